"""Reading of JSON Web Tokens (RFC 7519) without verification of their signatures."""

import binascii
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from functools import lru_cache

# The maximum length of a token, in characters, which bounds the memory of the cache.
LONGEST = 8192


def unverified(token: str) -> Mapping[str, object] | None:
    """Return the claims of a token, or None if the text is not a token.

    Anybody can write any claims into a token. A name from an unverified token serves to count
    requests by, and proves nothing.
    """
    return _read(token) if len(token) <= LONGEST else None


@lru_cache(maxsize=1024)
def _read(token: str) -> Mapping[str, object] | None:
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None
