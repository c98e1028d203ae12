"""Formats of client names."""

from hashlib import blake2b

ANONYMOUS = ""
"""The name of a client that no source of names identifies."""

# The maximum length of a name, in characters. Names are keys of stored tables.
LONGEST = 64

UNVERIFIED = "unverified:"
"""The prefix of an unverified name, if another source of names can verify them."""


def digest(text: str, key: bytes = b"") -> str:
    """Return a short keyed hash of a string (BLAKE2, RFC 7693, section 2.9).

    Without the key, nobody can find the string by hashing candidates.

    Args:
        text: The string that a client sent; it may contain lone surrogates.
        key: The key of the hash, at most 64 bytes.
    """
    content = text.encode("utf-8", "surrogatepass")
    return f"hash-{blake2b(content, key=key, digest_size=6).hexdigest()}"
