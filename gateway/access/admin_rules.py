"""Admin rules: who may read and who may operate on the admin port."""

from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

from gateway.base.addresses import Network


class Right(StrEnum):
    """What somebody may do: read, or read and operate."""

    READ = "read"
    OPERATE = "operate"

    def includes(self, other: "Right") -> bool:
        """Return whether this right has the other one in it."""
        return self is other or self is Right.OPERATE


class AdminToken(NamedTuple):
    """A token of the admin port.

    Attributes:
        name: The name of its holder, for the audit log.
        digest: The SHA-256 of the token; the token itself is not kept.
        right: What the holder may do.
    """

    name: str
    digest: bytes
    right: Right


class SignOn(NamedTuple):
    """The header fields by which trusted proxies name the users of a single sign-on.

    Attributes:
        user: The name of the field with the user.
        groups: The name of the field with the user's groups, with commas between them.
        proxies: The networks of the proxies that are believed.
        operators: The groups whose users may operate.
        readers: The groups whose users may read; None lets every user read.
    """

    user: str
    groups: str
    proxies: tuple[Network, ...]
    operators: frozenset[str]
    readers: frozenset[str] | None

    def right(self, groups: str) -> Right | None:
        """Return what a user may do.

        Args:
            groups: The groups of the user, with commas between them.
        """
        names = {name.strip() for name in groups.split(",")}
        if names & self.operators:
            return Right.OPERATE
        return Right.READ if self.readers is None or names & self.readers else None


class TlsFiles(NamedTuple):
    """The paths of the files of a certificate and its key, both PEM."""

    certificate: str
    key: str


class AdminRules(NamedTuple):
    """Who may ask the admin port.

    Attributes:
        tokens: The tokens.
        sign_on: The single sign-on; None where there is none.
        tls: The certificate of the port; None where it has no TLS.
    """

    tokens: tuple[AdminToken, ...] = ()
    sign_on: SignOn | None = None
    tls: TlsFiles | None = None

    @property
    def open(self) -> bool:
        """Whether nobody has to prove who they are."""
        return not self.tokens and self.sign_on is None

    def holder(self, text: str) -> AdminToken | None:
        """Return the token with this text, or None; takes as long whichever it is."""
        found, presented = None, token_digest(text)
        for token in self.tokens:
            if compare_digest(token.digest, presented):
                found = token
        return found


EVERYBODY = AdminRules()
"""The rules that name nobody."""


def token_digest(text: str) -> bytes:
    """Return the digest of the text of a token."""
    return sha256(text.encode(errors="surrogateescape")).digest()
