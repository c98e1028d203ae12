"""The forms of the names of clients."""

from hashlib import blake2b

ANONYMOUS = ""
"""The name of a client for which no source finds a name."""

# The maximum length of a name, in characters. Names are keys of tables that are kept for long.
LONGEST = 64

UNVERIFIED = "unverified:"
"""The prefix of a claimed, unproved name, where another source can verify names."""


def digest(text: str, key: bytes = b"") -> str:
    """Return the short keyed hash of a text (BLAKE2, RFC 7693, section 2.9).

    An attacker without the key cannot find the text by hashing candidates.

    Args:
        text: The text that a client sent; lone surrogates in it are hashed as they are.
        key: The key of the hash, at most 64 bytes.
    """
    content = text.encode("utf-8", "surrogatepass")
    return f"hash-{blake2b(content, key=key, digest_size=6).hexdigest()}"
