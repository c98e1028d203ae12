"""JSON Web Tokens (RFC 7519), read without being verified."""

import binascii
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from functools import lru_cache

# Longer tokens are not worth the work, nor the memory of those that were read.
LONGEST = 8192


def unverified(token: str) -> Mapping[str, object] | None:
    """Return the claims that a token makes, or None where it is none.

    Whoever wrote it may have written anything: this is a name to count by, and no proof.
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
