"""Verified JSON Web Tokens: from the key in gateway.yaml to what reads the claims."""

import time
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from pathlib import Path

from gateway.config.sections.client_models import JwtConfig
from gateway.core.clients import Claims
from gateway.core.unverified_token import LONGEST, unverified

# Verifying a signature costs as much as answering a request: those of busy clients are remembered.
_REMEMBERED = 1024


def claims_of(config: JwtConfig, folder: Path) -> Claims:
    """Return what reads the claims of a token, verified if the rules give a key.

    Args:
        config: what the rules say of it.
        folder: what the path of a key's file starts from.

    Raises:
        ValueError: with a sentence for the operator, when key and algorithms are of no use.
    """
    key = _key(config, folder)
    if key is None:
        for name in ("algorithms", "audience", "issuer"):
            if getattr(config, name):
                raise ValueError(
                    f"without a key nothing is verified; add key or key_file, or remove {name}"
                )
        return unverified
    return _verifying(config, key)


def _key(config: JwtConfig, folder: Path) -> str | None:
    if config.key is not None and config.key_file is not None:
        raise ValueError("has a key and a key_file; keep one of the two")
    if config.key_file is None:
        return config.key
    try:
        return (folder / config.key_file).read_text()
    except OSError as error:
        reason = error.strerror
    except ValueError:
        reason = "not a text"
    raise ValueError(f"the key_file '{config.key_file}' cannot be read: {reason}") from None


def _verifying(config: JwtConfig, key: str) -> Claims:
    # PyJWT: signatures, with cryptography where keys are public. Imported only where rules ask,
    # for it takes a fifth of a second.
    try:
        import jwt
    except ModuleNotFoundError:
        raise ValueError(
            "a token is verified by PyJWT, which is not installed; install version-gateway[jwt]"
        ) from None

    if not config.algorithms:
        raise ValueError(
            "the key is for no algorithm; add algorithms, such as [HS256] for a secret or [RS256]"
            " for a public key"
        )
    shared = [name for name in config.algorithms if name.startswith("HS")]
    if shared and len(shared) < len(config.algorithms):
        raise ValueError(
            "a key is either a secret (HS...) or a public one (RS..., PS..., ES..., EdDSA); keep"
            " the algorithms of one kind"
        )
    if "PRIVATE KEY-----" in key:
        raise ValueError("the key is a private one, which is its issuer's; give the public one")
    for name in config.algorithms:
        algorithm = jwt.get_algorithm_by_name(name)
        try:
            prepared = algorithm.prepare_key(key)
        except (ValueError, TypeError, jwt.PyJWTError):
            raise ValueError(
                f"the key is of no use for {name}; a secret is a text, a public key is PEM:"
                " -----BEGIN PUBLIC KEY----- ..."
            ) from None
        if algorithm.check_key_length(prepared):
            raise ValueError(
                f"the key is too short for {name}; RSA takes 2048 bits, and a secret is as long as"
                " the hash (RFC 7518, section 3.2)"
            )

    @lru_cache(maxsize=_REMEMBERED)
    def signed(token: str) -> Mapping[str, object] | None:
        options: jwt.types.Options = {
            "verify_aud": config.audience is not None,
            "verify_sub": False,
            # What time it is, is asked each time.
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
        }
        try:
            return jwt.decode(
                token,
                prepared,
                config.algorithms,
                options,
                audience=config.audience,
                issuer=config.issuer,
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None

    def claims(token: str) -> Mapping[str, object] | None:
        found = signed(token) if len(token) <= LONGEST else None
        return found if found is not None and _in_force(found) else None

    return claims


def _in_force(claims: Mapping[str, object]) -> bool:
    # RFC 7519, sections 4.1.4 and 4.1.5.
    start, end = claims.get("nbf", 0), claims.get("exp", inf)
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        return False
    return start <= time.time() < end
