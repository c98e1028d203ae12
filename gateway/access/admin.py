"""The key `admin` of gateway.yaml: the rights of users on the admin port, and its TLS."""

import re
import ssl
from enum import StrEnum
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from gateway.base.addresses import Network, parse_network
from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Mistakes
from gateway.base.model import SECRET, FieldName, Name, NonEmptyText, SectionModel, Some, matching
from gateway.http.certificates import read_pair, server_context
from gateway.http.client.listener import ListenCertificate

# Shorter tokens could be guessed. Other characters are not allowed in a header field.
_PATTERN = r"^[!-~]{16,}$"
_VALID = "a token has at least 16 printable ASCII characters, and no space"


class AdminToken(SectionModel):
    """A token of the admin port and the right of its holder."""

    right: Literal["read", "operate"]
    """The right of the holder. The right to operate includes the right to read."""
    token: Annotated[str, matching(_PATTERN, _VALID), SECRET] | None = None
    """The token: 16 or more printable ASCII characters without spaces. Take it from the
    environment: ${NAME}. Set either token or token_file."""
    token_file: NonEmptyText | None = None
    """The file that contains the token. Its path starts from the folder of gateway.yaml. A changed
    file takes effect at once. Set either token or token_file."""

    def read(self, files: ConfigFiles) -> str:
        """Return the token; raises ValueError."""
        if (self.token is None) == (self.token_file is None):
            raise ValueError("needs exactly one of token and token_file")
        if self.token_file is None:
            return self.token or ""
        content = files.read(self.token_file, "token_file")
        text = content.decode(errors="replace").strip()
        if re.fullmatch(_PATTERN, text):
            return text
        raise ValueError(f"the token_file '{self.token_file}' cannot be used: {_VALID}")


class SignOn(SectionModel):
    """Single sign-on: the header fields in which a trusted proxy sends the user and the groups."""

    proxies: Some[str]
    """The networks (CIDR) of the trusted proxies. These proxies must remove the fields from client
    requests."""
    user: FieldName = "X-Forwarded-User"
    """The request header with the name of the user. The default is X-Forwarded-User."""
    groups: FieldName = "X-Forwarded-Groups"
    """The request header with the groups of the user, separated by commas. The default is
    X-Forwarded-Groups."""
    operators: tuple[NonEmptyText, ...] = ()
    """The groups whose users may operate. By default, no user may."""
    readers: Some[NonEmptyText] | None = None
    """The groups whose users may only read. By default, every user may read."""

    def compile(self, mistakes: Mistakes) -> "TrustedSignOn":
        at = "admin", "sign_on", "proxies"
        return TrustedSignOn(
            self.user,
            self.groups,
            mistakes.attempt_each(parse_network, self.proxies, *at),
            frozenset(self.operators),
            None if self.readers is None else frozenset(self.readers),
        )


class AdminCertificate(ListenCertificate):
    """The certificate with which the admin port uses TLS. Changed files take effect at once."""

    def context(self, files: ConfigFiles) -> ssl.SSLContext:
        return server_context(read_pair(files, self.certificate, self.key))


class Admin(SectionModel):
    """The access to the admin port, by tokens or a single sign-on, and the port's TLS."""

    tokens: dict[Name, AdminToken] = Field(default_factory=dict)
    """The tokens of the admin port, by the name of the holder, which the audit log shows. By
    default, there are no tokens."""
    sign_on: SignOn | None = None
    """The single sign-on: a trusted proxy names the user in header fields. Without it, only tokens
    identify users."""
    tls: AdminCertificate | None = None
    """The TLS settings of the admin port. Without them, the port uses plain HTTP. Adding or
    removing them takes effect at a restart."""

    def compile(self, files: ConfigFiles, mistakes: Mistakes) -> "AdminAccess":
        if not (self.tokens or self.sign_on or self.tls):
            mistakes.add("is empty; add tokens, sign_on or tls, or remove it", "admin")
        holders: dict[bytes, TokenHolder] = {}
        for name, token in self.tokens.items():
            at = ("admin", "tokens", name)
            text = mistakes.attempt(partial(token.read, files), *at)
            if text is not None:
                holder = TokenHolder(name, token_digest(text), Right(token.right))
                other = holders.setdefault(holder.digest, holder)
                if other is not holder:
                    text = f"has the same token as {other.name}; one token has one holder"
                    mistakes.add(text, *at)
        sign_on = None if self.sign_on is None else self.sign_on.compile(mistakes)
        tls = None
        if self.tls is not None:
            tls = mistakes.attempt(partial(self.tls.context, files), "admin", "tls")
        return AdminAccess(tuple(holders.values()), sign_on, tls)


class Right(StrEnum):
    """A right on the admin port: read, or read and operate."""

    READ = "read"
    OPERATE = "operate"

    def includes(self, other: "Right") -> bool:
        return self is other or self is Right.OPERATE


class TokenHolder(NamedTuple):
    """The holder of a token of the admin port; `digest` is the SHA-256 of the token."""

    name: str
    digest: bytes
    right: Right


def token_digest(text: str) -> bytes:
    return sha256(text.encode(errors="surrogateescape")).digest()


class TrustedSignOn(NamedTuple):
    """The header fields in which trusted proxies name users and groups, and the groups' rights."""

    user: str
    groups: str
    proxies: tuple[Network, ...]
    operators: frozenset[str]
    readers: frozenset[str] | None

    def right(self, groups: str) -> Right | None:
        names = {name.strip() for name in groups.split(",")}
        if names & self.operators:
            return Right.OPERATE
        return Right.READ if self.readers is None or names & self.readers else None


class AdminAccess(NamedTuple):
    """The compiled access to the admin port; `tls` is None without TLS."""

    tokens: tuple[TokenHolder, ...] = ()
    sign_on: TrustedSignOn | None = None
    tls: ssl.SSLContext | None = None

    @property
    def open(self) -> bool:
        return not self.tokens and self.sign_on is None

    def holder(self, text: str) -> TokenHolder | None:
        """Return the holder of a token, or None if the token is unknown; takes constant time."""
        found, presented = None, token_digest(text)
        for token in self.tokens:
            if compare_digest(token.digest, presented):
                found = token
        return found


OPEN_ACCESS = AdminAccess()
