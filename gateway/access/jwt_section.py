"""`jwt` in gateway.yaml: a claim of a JSON Web Token, verified or not, gives a client its name."""

import time
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from gateway.access.clients import Claims
from gateway.access.unverified_token import LONGEST, unverified
from gateway.base.model import FieldName, NonEmptyText, Secret, SectionModel
from gateway.base.regular_file import read_regular

# Verifying a signature costs as much as answering a request: those of busy clients are remembered.
_REMEMBERED = 1024
_TIMES = "exp", "nbf", "iat"

Algorithm = Literal[
    "HS256",
    "HS384",
    "HS512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
]
_PUBLIC = [name for name in get_args(Algorithm) if not name.startswith("HS")]


class JwtConfig(SectionModel):
    """A claim of a JSON Web Token gives the client its name. Without a key, it is not verified."""

    claim: NonEmptyText
    """The claim of the token that holds the client's name, such as sub."""
    header: FieldName = "Authorization"
    """The request header that holds the token, with or without `Bearer` before it. The default is
    Authorization."""
    key: Secret | None = None
    """The key that verifies tokens: a shared secret, or a public key as PEM. Without key and
    key_file, tokens are not verified."""
    key_file: NonEmptyText | None = None
    """The file that holds the key, instead of key. Its path starts from the folder of
    gateway.yaml."""
    algorithms: tuple[Algorithm, ...] = ()
    """The signature algorithms that are accepted (RFC 7518), such as HS256 or RS256. A key needs
    at least one."""
    audience: str | None = None
    """The audience (aud) that a token must have. Without it, any audience is accepted."""
    issuer: str | None = None
    """The issuer (iss) that a token must have. Without it, any issuer is accepted."""


def build_claims(config: JwtConfig, folder: Path) -> Claims:
    """Return the function that reads the claims of a token, verified if there is a key.

    Args:
        config: the section of gateway.yaml.
        folder: the folder that the path of a key file starts from.

    Raises:
        ValueError: the key and the algorithms cannot be used; its text is the mistake.
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
        return read_regular(folder / config.key_file).decode()
    except OSError as error:
        reason = error.strerror
    except ValueError:
        reason = "not a text"
    raise ValueError(f"the key_file '{config.key_file}' cannot be read: {reason}") from None


def _check_algorithms(config: JwtConfig) -> None:
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


def _prepared(library: ModuleType, algorithm: str, key: str) -> Any:
    """Return the key as the library takes it for an algorithm; None if it is none for that."""
    try:
        return library.get_algorithm_by_name(algorithm).prepare_key(key)
    except (ValueError, TypeError, library.PyJWTError):
        return None


def _remedy(library: ModuleType, algorithm: str, key: str) -> str:
    # None of a secret: a public key without its PEM is a text, too, and anybody may know it.
    uses = [name for name in _PUBLIC if _prepared(library, name, key) is not None]
    if not uses:
        return "a secret is a text, a public key is PEM: -----BEGIN PUBLIC KEY----- ..."
    return f"it is one for {', '.join(uses)}: name these, or give the key for {algorithm}"


def _verifying(config: JwtConfig, key: str) -> Claims:
    # PyJWT: signatures, with cryptography where keys are public. Imported only where tokens are
    # verified, as the import takes a fifth of a second.
    try:
        import jwt
    except ModuleNotFoundError:
        raise ValueError(
            "a token is verified by PyJWT, which is not installed; install version-gateway[jwt]"
        ) from None

    _check_algorithms(config)
    if "PRIVATE KEY-----" in key:
        raise ValueError("the key is a private one, which is its issuer's; give the public one")
    for name in config.algorithms:
        prepared = _prepared(jwt, name, key)
        if prepared is None:
            raise ValueError(f"the key is of no use for {name}; {_remedy(jwt, name, key)}")
        if jwt.get_algorithm_by_name(name).check_key_length(prepared):
            raise ValueError(
                f"the key is too short for {name}; RSA takes 2048 bits, and a secret is as long as"
                " the hash (RFC 7518, section 3.2)"
            )

    @lru_cache(maxsize=_REMEMBERED)
    def signed(token: str) -> Mapping[str, object] | None:
        options: jwt.types.Options = {
            "verify_aud": config.audience is not None,
            "verify_sub": False,
            # The times are checked at each request, as this result is remembered.
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
    # RFC 7519, sections 4.1.4 to 4.1.6.
    times: dict[str, Any] = {name: claims[name] for name in _TIMES if name in claims}
    if not all(map(_is_numeric_date, times.values())):
        return False
    now = time.time()
    return bool(times.get("nbf", now) <= now < times.get("exp", inf))


def _is_numeric_date(value: object) -> bool:
    """Whether a value is a JSON number (RFC 7519, section 2), however large or small.

    JSON as Python reads it has Infinity and NaN, and booleans are numbers in Python.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -inf < value < inf
