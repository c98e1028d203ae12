"""`jwt` in gateway.yaml: a claim of a JSON Web Token (RFC 7519) gives a client its name."""

import binascii
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import inf
from types import ModuleType
from typing import Any, Literal, get_args

from gateway.access.name_source import Certificate, NameSource
from gateway.base.client_names import Identity, Rejection
from gateway.base.files import ConfigFiles
from gateway.base.model import FieldName, NonEmptyText, Secret, SectionModel
from gateway.base.request import RequestHead

Claims = Mapping[str, object]
_Shared = Literal["HS256", "HS384", "HS512"]
_Public = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
Algorithm = Literal[_Shared, _Public]

# The maximum length of a token, in characters, which bounds the memory of the caches.
_MAX_LENGTH = 8192
# The number of cached tokens: verifying a signature costs as much as answering a request.
_CACHED = 1024


class Jwt(SectionModel):
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

    @property
    def is_verified(self) -> bool:
        return self.key is not None or self.key_file is not None

    def compile(self, files: ConfigFiles, shown: Callable[[str], str]) -> NameSource:
        """Return the source of names.

        Args:
            shown: returns the name of a client as logs and tables show it.

        Raises:
            ValueError: The key and the algorithms cannot be used; the text is the mistake.
        """
        claim, claims, verified = self.claim, self._claims(files), self.is_verified
        header, place = self.header, f"the {self.header} header"
        rejected = Identity(rejection=Rejection("jwt", place, "is not valid"))

        def read(
            head: RequestHead, peer: str, certificate: Certificate | None
        ) -> Identity | str | None:
            values = head.fields.getall(header, ())
            if not values:
                return None
            scheme, _, token = values[0].strip(" \t").rpartition(" ")
            if scheme.rstrip(" ").lower() not in ("", "bearer"):  # RFC 6750, section 2.1
                return None
            found = claims(token) if len(token) <= _MAX_LENGTH else None
            value_of_claim = None if found is None else found.get(claim)
            if isinstance(value_of_claim, bool) or not isinstance(value_of_claim, str | int):
                return rejected if verified else None
            if not verified:
                return str(value_of_claim)
            return Identity(shown(str(value_of_claim)), "jwt")

        if not verified:
            return NameSource(read, claimed=True, field=header)
        return NameSource(read, "jwt", place, False, header, None, ("Bearer", ""))

    def _claims(self, files: ConfigFiles) -> Callable[[str], Claims | None]:
        if self.is_verified:
            return self._verified_claims(self._read_key(files))
        for name in ("algorithms", "audience", "issuer"):
            if getattr(self, name):
                raise ValueError(
                    f"{name} is only valid together with a key; add key or key_file, or remove"
                    f" {name}"
                )
        return _unverified_claims

    def _read_key(self, files: ConfigFiles) -> str:
        if self.key is not None:
            if self.key_file is not None:
                raise ValueError("has a key and a key_file; keep one of the two")
            return self.key
        assert self.key_file is not None
        try:
            return files.read(self.key_file, "key_file").decode()
        except UnicodeDecodeError:
            text = f"the key_file '{self.key_file}' cannot be read: not a text"
            raise ValueError(text) from None

    def _verified_claims(self, key: str) -> Callable[[str], Claims | None]:
        # PyJWT: signatures, with cryptography for public keys. Imported only where tokens are
        # verified, as the import takes a fifth of a second.
        try:
            import jwt
        except ModuleNotFoundError:
            raise ValueError(
                "a token is verified by PyJWT, which is not installed; install version-gateway[jwt]"
            ) from None

        algorithms, audience, issuer = self.algorithms, self.audience, self.issuer
        prepared = _checked_key(jwt, key, algorithms)
        options: jwt.types.Options = {
            "verify_aud": audience is not None,
            "verify_sub": False,
            # The times are checked for each request, as the result is cached.
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
        }

        @lru_cache(maxsize=_CACHED)
        def signed_claims(token: str) -> Claims | None:
            try:
                return jwt.decode(
                    token, prepared, algorithms, options, audience=audience, issuer=issuer
                )
            except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
                return None

        def claims(token: str) -> Claims | None:
            found = signed_claims(token)
            return found if found is not None and _is_in_force(found) else None

        return claims


@lru_cache(maxsize=_CACHED)
def _unverified_claims(token: str) -> Claims | None:
    """Return the unverified claims of a token, or None if the text is not a token."""
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _checked_key(library: ModuleType, key: str, algorithms: tuple[Algorithm, ...]) -> Any:
    """Return the key as the library uses it for the algorithms; raises ValueError."""
    if not algorithms:
        raise ValueError(
            "a key needs algorithms; add [HS256] for a secret, or [RS256] for a public key"
        )
    if len({name.startswith("HS") for name in algorithms}) > 1:
        raise ValueError(
            "a key is either a secret (HS...) or a public one (RS..., PS..., ES..., EdDSA); keep"
            " the algorithms of one kind"
        )
    if "PRIVATE KEY-----" in key:
        raise ValueError("the key is private, and only its issuer needs it; use the public key")
    for name in algorithms:
        prepared = _prepared(library, name, key)
        if prepared is None:
            raise ValueError(f"the key cannot be used for {name}; {_remedy(library, name, key)}")
        if library.get_algorithm_by_name(name).check_key_length(prepared):
            raise ValueError(
                f"the key is too short for {name}; RSA needs 2048 bits, and a secret the length of"
                " the hash (RFC 7518, section 3.2)"
            )
    return prepared


def _prepared(library: ModuleType, algorithm: str, key: str) -> Any:
    try:
        return library.get_algorithm_by_name(algorithm).prepare_key(key)
    except (ValueError, TypeError, library.PyJWTError):
        return None


def _remedy(library: ModuleType, algorithm: str, key: str) -> str:
    # No HS algorithm is suggested: a public key without its PEM would pass as a secret.
    fitting = [name for name in get_args(_Public) if _prepared(library, name, key) is not None]
    if not fitting:
        return "a secret is a text, a public key is PEM: -----BEGIN PUBLIC KEY----- ..."
    return f"use {', '.join(fitting)}, or a key for {algorithm}"


def _is_in_force(claims: Claims) -> bool:
    # RFC 7519, sections 4.1.4 to 4.1.6.
    times: dict[str, Any] = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    if not all(map(_is_numeric_date, times.values())):
        return False
    now = time.time()
    return bool(times.get("nbf", now) <= now < times.get("exp", inf))


def _is_numeric_date(value: object) -> bool:
    # A JSON number (RFC 7519, section 2). Python also reads Infinity and NaN, and a bool is an int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -inf < value < inf
