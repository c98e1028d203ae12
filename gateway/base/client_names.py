"""Names of clients, and how a client proves its name."""

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Literal, NamedTuple

ANONYMOUS = ""

# The maximum length of a name, in characters. Names are keys of stored tables.
LONGEST = 64

UNVERIFIED = "unverified:"
"""The prefix of an unverified name, if another source of names can verify them."""

Credential = Literal["api_key", "jwt", "certificate"]
"""The kinds of credentials that prove a name."""

ASSUMED: Literal["assumed"] = "assumed"
"""The proof of a name that `explain` gets from the user; it counts as every kind of credential."""

CREDENTIALS: dict[Credential, str] = {
    "api_key": "an API key",
    "jwt": "a token",
    "certificate": "a client certificate",
}


class Rejection(NamedTuple):
    """A credential that does not prove the name of the client.

    Attributes:
        place: The place of the credential in the request, such as `the X-Api-Key header`.
        reason: The second half of a sentence about the credential, without the credential itself.
        retry_after: The seconds until the gateway may have the keys that verify the credential;
            None if the credential itself is invalid.
    """

    credential: Credential
    place: str
    reason: str
    retry_after: int | None = None

    def __str__(self) -> str:
        noun = CREDENTIALS[self.credential].partition(" ")[2]
        return f"{noun} in {self.place} {self.reason}"


class Identity(NamedTuple):
    """The name of the client of a request, and its proof.

    Attributes:
        proof: The credential that proves the name, or ASSUMED; None for a name without proof.
        scopes: The scopes that the credential grants (RFC 6749, section 3.3).
        rejection: The first unusable credential of the request; None without one.
        pending: A function to await before the client is identified again: it fetches the keys
            that verify the credential. None if the result is final.
    """

    name: str = ANONYMOUS
    proof: Credential | Literal["assumed"] | None = None
    scopes: frozenset[str] = frozenset()
    rejection: Rejection | None = None
    pending: Callable[[], Awaitable[None]] | None = None


NOBODY = Identity()


def digest(text: str, key: bytes = b"") -> str:
    """Return a short keyed hash (BLAKE2, RFC 7693, section 2.9) of any text that a client sent.

    Without the key of at most 64 bytes, nobody can find the string by hashing candidates.
    """
    content = text.encode("utf-8", "surrogatepass")
    return f"hash-{blake2b(content, key=key, digest_size=6).hexdigest()}"
