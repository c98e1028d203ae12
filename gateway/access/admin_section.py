"""`admin` in gateway.yaml: who may read and who may operate on the admin port."""

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gateway.access.admin_rules import (
    AdminRules,
    AdminToken,
    Right,
    SignOn,
    TlsFiles,
    token_digest,
)
from gateway.access.tls_files import server_context
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import SECRET, FieldName, Name, NonEmptyText, SectionModel, Some, matching
from gateway.base.regular_file import read_regular
from gateway.http.trusted_proxies_section import network

# A shorter token could be guessed; others do not fit into a header field.
_PATTERN = r"^[!-~]{16,}$"
_RIGHT = "a token has 16 or more letters, digits and signs of ASCII, and no space"


class AdminTokenConfig(SectionModel):
    """A token of the admin port, and what its holder may do."""

    right: Literal["read", "operate"]
    """What the holder of the token may do: read, or operate, which has reading in it."""
    token: Annotated[str, matching(_PATTERN, _RIGHT), SECRET] | None = None
    """The token, of 16 or more letters, digits and signs of ASCII. Take it from the environment:
    ${NAME}. A token is given by either token or token_file."""
    token_file: NonEmptyText | None = None
    """The file that holds the token, instead of token. Its path starts from the folder of
    gateway.yaml, and it is read again with every reload."""


class SignOnConfig(SectionModel):
    """The header fields by which a proxy names the user of a single sign-on."""

    proxies: Some[str]
    """The networks (CIDR) of the proxies that are believed. A proxy has to remove the fields from
    what clients send."""
    user: FieldName = "X-Forwarded-User"
    """The request header that holds the name of the user. The default is X-Forwarded-User."""
    groups: FieldName = "X-Forwarded-Groups"
    """The request header that holds the groups of the user, with commas between them. The default
    is X-Forwarded-Groups."""
    operators: tuple[NonEmptyText, ...] = ()
    """The groups whose users may operate. By default, no user may."""
    readers: Some[NonEmptyText] | None = None
    """The groups whose users may read, beside those that may operate. Without it, every user
    may."""


class AdminTlsConfig(SectionModel):
    """The certificate with which the admin port uses TLS. Changed files are used at once."""

    certificate: NonEmptyText
    """The file of the certificate and of those that lead to its authority, as PEM. Its path starts
    from the folder of gateway.yaml."""
    key: NonEmptyText
    """The file of the key of the certificate, as PEM and not encrypted. Its path starts from the
    folder of gateway.yaml."""


class AdminConfig(SectionModel):
    """Who may ask the admin port, by tokens or by a single sign-on, and its TLS."""

    tokens: dict[Name, AdminTokenConfig] = Field(default_factory=dict)
    """The tokens of the admin port, by the name of the holder, which the audit log shows. By
    default, there is none."""
    sign_on: SignOnConfig | None = None
    """The single sign-on: header fields of a trusted proxy name the user. Without it, tokens alone
    do."""
    tls: AdminTlsConfig | None = None
    """The TLS of the admin port. Without it, the port has none. A change takes effect at a
    restart."""


def build_admin(config: AdminConfig, folder: Path, mistakes: Mistakes) -> AdminRules:
    """Return who may ask the admin port; mistakes go to `mistakes`.

    Args:
        config: the section.
        folder: the folder that the paths of files start from.
        mistakes: collects the mistakes.
    """
    if config == AdminConfig():
        mistakes.add("is empty; give it tokens, sign_on or tls, or leave it out", "admin")
    tokens: dict[bytes, AdminToken] = {}
    for name, section in config.tokens.items():
        at = ("admin", "tokens", name)
        text = mistakes.attempt(partial(_text, section, folder), *at)
        if text is not None:
            token = AdminToken(name, token_digest(text), Right(section.right))
            other = tokens.setdefault(token.digest, token)
            if other is not token:
                mistakes.add(f"has the same token as {other.name}; one token has one holder", *at)
    return AdminRules(
        tuple(tokens.values()),
        _sign_on(config.sign_on, mistakes),
        None if config.tls is None else _tls(config.tls, folder, mistakes),
    )


def _text(config: AdminTokenConfig, folder: Path) -> str:
    if (config.token is None) == (config.token_file is None):
        raise ValueError("a token is given by exactly one of token and token_file")
    if config.token is not None:
        return config.token
    assert config.token_file is not None
    try:
        text = read_regular(folder / config.token_file).decode().strip()
    except OSError as error:
        reason = error.strerror
    except ValueError:
        reason = "not a text"
    else:
        if re.fullmatch(_PATTERN, text):
            return text
        reason = _RIGHT
    raise ValueError(f"the token_file '{config.token_file}' cannot be used: {reason}")


def _tls(config: AdminTlsConfig, folder: Path, mistakes: Mistakes) -> TlsFiles:

    files = TlsFiles(str(folder / config.certificate), str(folder / config.key))
    mistakes.attempt(partial(server_context, files), "admin", "tls")
    return files


def _sign_on(config: SignOnConfig | None, mistakes: Mistakes) -> SignOn | None:
    if config is None:
        return None
    at: Location = ("admin", "sign_on", "proxies")
    proxies = [
        mistakes.attempt(partial(network, text), *at, index)
        for index, text in enumerate(config.proxies)
    ]
    return SignOn(
        config.user,
        config.groups,
        tuple(each for each in proxies if each is not None),
        frozenset(config.operators),
        None if config.readers is None else frozenset(config.readers),
    )
