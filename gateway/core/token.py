"""JSON Web Tokens (RFC 7519), read without being verified."""

import binascii
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from functools import lru_cache

# Tokens that are longer are not worth the work: they say who somebody claims to be.
LONGEST = 8192


@lru_cache(maxsize=1024)
def unverified(token: str) -> Mapping[str, object] | None:
    """Return the claims that a token makes, or None where it is none.

    Whoever wrote it may have written anything: this is a name to count by, and no proof.
    """
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST or not token.isascii():
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None
