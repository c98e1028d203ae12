"""`jwt` in gateway.yaml: a claim of a JSON Web Token (RFC 7519) gives a client its name."""

import binascii
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from math import inf
from types import ModuleType
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from gateway.access.api_keys import AUTHORIZATION
from gateway.access.key_sets import (
    KeysById,
    KeySet,
    VerificationKey,
    check_url,
    find_keys,
    read_key_set,
    shared_key_set,
)
from gateway.access.name_source import Certificate, NameSource
from gateway.base.client_names import Identity, Rejection
from gateway.base.extras import install
from gateway.base.files import ConfigFiles
from gateway.base.model import (
    FieldName,
    NonEmptyText,
    NumberText,
    OneOrSome,
    Secret,
    SectionModel,
)
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
_NO_KEYS = "cannot be verified yet, since the keys of its issuer are not fetched"
_OTHER_SIGNATURE = "has a signature that does not match"
_KEYS = ("key", "key_file", "jwks")


class Jwt(SectionModel):
    """A claim of a JSON Web Token gives the client its name. Without a key, it is not verified."""

    claim: NonEmptyText = "sub"
    """The claim of the token that holds the client's name. The default is sub."""
    header: FieldName = AUTHORIZATION
    """The request header that holds the token, with or without `Bearer` before it. The default is
    Authorization."""
    key: Secret | None = None
    """The key that verifies tokens: a shared secret, or a public key as PEM. Without key, key_file,
    jwks and discover, tokens are not verified."""
    key_file: NonEmptyText | None = None
    """The file that holds the key, or a JSON Web Key Set. Its path starts from the folder of
    gateway.yaml."""
    jwks: NonEmptyText | None = None
    """The https:// URL of the issuer's JSON Web Key Set. The keys are fetched again when they
    expire, and if a token names an unknown key."""
    discover: bool = False
    """Whether the URL of the key set comes from OpenID Connect Discovery at the issuer. The default
    is false."""
    algorithms: tuple[Algorithm, ...] = ()
    """The signature algorithms that are accepted (RFC 7518), such as HS256 or RS256. A key needs
    at least one."""
    audience: OneOrSome[NonEmptyText, NonEmptyText] | None = None
    """The audience (aud) that a token must have, or a list of which it must have one. Without it,
    any audience is accepted."""
    issuer: str | None = None
    """The issuer (iss) that a token must have. Without it, any issuer is accepted."""
    leeway: Annotated[float, Field(ge=0, le=600), NumberText] = 0
    """The tolerated difference between the clocks of the issuer and the gateway, in seconds. The
    default is 0."""
    scopes: NonEmptyText | None = None
    """The claim of the token that holds its scopes, for `access`: a text with blanks between them,
    or a list. The default is scope or else scp."""

    @property
    def is_verified(self) -> bool:
        return self.discover or any(getattr(self, name) is not None for name in _KEYS)

    def compile(self, files: ConfigFiles, shown: Callable[[str], str]) -> NameSource:
        """Return the source of names; raises ValueError if the key or the algorithms do not fit.

        `shown` returns the name of a client as logs and tables show it.
        """
        if not self.is_verified:
            for name in ("algorithms", "audience", "issuer"):
                if getattr(self, name):
                    raise ValueError(
                        f"{name} is only valid together with a key; add key, key_file or jwks, or"
                        f" remove {name}"
                    )
            read = partial(_claimed_name, self.header, self.claim)
            return NameSource(read, claimed=True, field=self.header)
        # PyJWT: signatures, with cryptography for public keys. Imported only where tokens are
        # verified, as the import takes a fifth of a second.
        try:
            import jwt
        except ModuleNotFoundError:
            raise ValueError(f"a token is verified by PyJWT, {install('jwt')}") from None
        verifier = _TokenVerifier(jwt, self, self._keys(jwt, files), shown)
        place, keys = verifier.place, verifier.key_set
        return NameSource(
            verifier.identify, "jwt", place, False, self.header, None, ("Bearer", ""), None, keys
        )

    def _keys(self, library: ModuleType, files: ConfigFiles) -> KeysById | KeySet:
        given = [name for name in _KEYS if getattr(self, name) is not None]
        given += ["discover"] * self.discover
        if len(given) > 1:
            raise ValueError(f"has {' and '.join(given)}; keep one of them")
        if self.key is not None:
            return _keys_of(library, self.key, self.algorithms)
        if self.key_file is not None:
            try:
                text = files.read(self.key_file, "key_file").decode()
            except UnicodeDecodeError:
                text = f"the key_file '{self.key_file}' cannot be read: not a text"
                raise ValueError(text) from None
            return _keys_of(library, text, self.algorithms)
        url = self.jwks or self.issuer
        if url is None:
            raise ValueError("discover needs the URL of the issuer; add issuer")
        _check_algorithms(self.algorithms, public=True)
        try:
            check_url(url)
        except ValueError as error:
            raise ValueError(f"{'issuer' if self.discover else 'jwks'} {error}") from None
        return shared_key_set(library, url, get_args(_Public), discover=self.discover)


class _TokenVerifier:
    """Verifies the tokens of one source.

    Verified tokens are cached by the value of the header, since verifying a signature costs as much
    as answering a request. Their times are checked for each request.

    Args:
        library: PyJWT.
        shown: returns the name of a client as logs and tables show it.

    Attributes:
        key_set: the keys of the issuer; None if the keys are in the configuration.
    """

    def __init__(
        self,
        library: ModuleType,
        config: Jwt,
        keys: KeysById | KeySet,
        shown: Callable[[str], str],
    ) -> None:
        self._jwt, self._config, self._shown = library, config, shown
        self._keys = keys
        self.key_set = keys if isinstance(keys, KeySet) else None
        self.place = f"the {config.header} header"
        self._header, self._leeway = config.header, config.leeway
        self._cache: dict[str, tuple[Identity, float, float]] = {}
        self._changes = 0

    def identify(
        self, head: RequestHead, peer: str, certificate: Certificate | None
    ) -> Identity | None:
        values = head.fields.getall(self._header, ())
        if not values:
            return None
        value, key_set = values[0], self.key_set
        if key_set is not None:
            key_set.refresh()
            if key_set.changes != self._changes:
                self._changes = key_set.changes
                self._cache.clear()
        known = self._cache.get(value)
        if known is None:
            scheme, _, token = value.strip(" \t").rpartition(" ")
            if not token or scheme.rstrip(" ").lower() not in ("", "bearer"):
                return None  # RFC 6750, section 2.1
            verified = self._verified(token)
            if isinstance(verified, Identity):
                return verified
            known = verified
            if len(self._cache) >= _CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[value] = known
        identity, begins, ends = known
        now, leeway = time.time(), self._leeway
        if now - leeway >= ends:
            return self._rejected("has expired")
        if now + leeway < begins:
            return self._rejected("is not valid yet")
        return identity if len(values) == 1 else self._rejected("occurs more than once")

    def _rejected(self, reason: str, retry_after: int | None = None) -> Identity:
        return Identity(rejection=Rejection("jwt", self.place, reason, retry_after))

    def _verified(self, token: str) -> Identity | tuple[Identity, float, float]:
        """Return the client with the times of the token, or only an Identity if it is rejected."""
        if len(token) > _MAX_LENGTH:
            return self._rejected(f"has more than {_MAX_LENGTH} characters")
        try:
            header = self._jwt.get_unverified_header(token)
        except (self._jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return self._rejected("is malformed")
        algorithm = header.get("alg")
        if algorithm not in self._config.algorithms:
            return self._rejected("is signed by an algorithm that is not accepted")
        if "crit" in header:  # RFC 7515, section 4.1.11: nothing of it is understood
            return self._rejected("has a critical header parameter, which is not supported")
        kid, key_set = header.get("kid"), self.key_set
        if key_set is None:
            assert not isinstance(self._keys, KeySet)
            found = find_keys(self._keys, kid, algorithm)
        else:
            found = find_keys(key_set.keys, kid, algorithm)
            if not found and key_set.may_fetch:
                return self._rejected(_NO_KEYS, 1)._replace(pending=key_set.fetch)
            if not key_set.keys:
                return self._rejected(_NO_KEYS, key_set.retry_after)
        reason = "is signed by an unknown key"
        for key in found:
            claims = self._claims(token, key, algorithm)
            if not isinstance(claims, str):
                return self._identified(claims)
            reason = claims
            if reason is not _OTHER_SIGNATURE:
                break
        return self._rejected(reason)

    def _claims(self, token: str, key: VerificationKey, algorithm: str) -> Claims | str:
        library, config = self._jwt, self._config
        options = {
            "verify_aud": config.audience is not None,
            "verify_sub": False,
            "verify_jti": False,
            # The times are checked for each request, as the result is cached.
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
        }
        try:
            claims: Claims = library.decode(
                token,
                key.key,
                [algorithm],
                options,
                audience=config.audience,
                issuer=config.issuer,
            )
        except library.InvalidSignatureError:
            return _OTHER_SIGNATURE
        except (library.InvalidAudienceError, library.InvalidIssuerError) as error:
            named = isinstance(error, library.InvalidIssuerError)
            return "is from another issuer" if named else "is for another audience"
        except library.MissingRequiredClaimError as error:
            return f"has no claim {error.claim}"
        except (library.PyJWTError, ValueError, TypeError, RecursionError):
            return "is malformed"
        return claims

    def _identified(self, claims: Claims) -> Identity | tuple[Identity, float, float]:
        # RFC 7519, sections 4.1.4 to 4.1.6.
        times: dict[str, Any] = {
            name: claims[name] for name in ("exp", "nbf", "iat") if name in claims
        }
        if not all(map(_is_numeric_date, times.values())):
            return self._rejected("has a time (exp, nbf or iat) that is not a number")
        name = _name_in(claims, self._config.claim)
        if name is None:
            return self._rejected(f"has no claim '{self._config.claim}' with a name")
        identity = Identity(self._shown(name), "jwt", self._scopes(claims))
        return identity, times.get("nbf", -inf), times.get("exp", inf)

    def _scopes(self, claims: Claims) -> frozenset[str]:
        # RFC 8693, section 4.2; `scp` is that of Azure AD and Okta.
        names = ("scope", "scp") if self._config.scopes is None else (self._config.scopes,)
        found = next((claims[name] for name in names if name in claims), ())
        if isinstance(found, str):
            return frozenset(found.split())
        listed = found if isinstance(found, list) else ()
        return frozenset(each for each in listed if isinstance(each, str))


def _name_in(claims: Claims, claim: str) -> str | None:
    found = claims.get(claim)
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    return str(found) or None


def _claimed_name(
    header: str, claim: str, head: RequestHead, peer: str, certificate: Certificate | None
) -> str | None:
    values = head.fields.getall(header, ())
    if not values:
        return None
    scheme, _, token = values[0].strip(" \t").rpartition(" ")
    if scheme.rstrip(" ").lower() not in ("", "bearer") or len(token) > _MAX_LENGTH:
        return None
    claims = _unverified_claims(token)
    return None if claims is None else _name_in(claims, claim)


@lru_cache(maxsize=_CACHED)
def _unverified_claims(token: str) -> Claims | None:
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _check_algorithms(algorithms: tuple[Algorithm, ...], *, public: bool = False) -> None:
    """Raise ValueError if a key, or the public keys of a key set, cannot be used."""
    if not algorithms:
        raise ValueError(
            "a key needs algorithms; add [HS256] for a secret, or [RS256] for a public key"
        )
    secret = {name.startswith("HS") for name in algorithms}
    if len(secret) > 1 or (public and True in secret):
        raise ValueError(
            "a key is either a secret (HS...) or a public one (RS..., PS..., ES..., EdDSA); keep"
            " the algorithms of one kind"
        )


def _keys_of(library: ModuleType, text: str, algorithms: tuple[Algorithm, ...]) -> KeysById:
    """Return a secret, a public key as PEM, or a key set as JSON; raises ValueError."""
    if text.lstrip().startswith("{"):
        _check_algorithms(algorithms, public=True)
        return read_key_set(library, text, algorithms)
    key = _checked_key(library, text, algorithms)
    return {None: (VerificationKey(key, frozenset(algorithms)),)}


def _checked_key(library: ModuleType, key: str, algorithms: tuple[Algorithm, ...]) -> Any:
    """Return the key as the library uses it for the algorithms; raises ValueError."""
    _check_algorithms(algorithms)
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


def _is_numeric_date(value: object) -> bool:
    # A JSON number (RFC 7519, section 2). Python also reads Infinity and NaN, and a bool is an int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -inf < value < inf
