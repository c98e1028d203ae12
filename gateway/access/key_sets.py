"""Key sets (JWKS, RFC 7517): the public keys that verify tokens, from a file or from their issuer.

A key set is fetched when a request first needs it, and shared by the workers of a gateway. Its
keys stay in use while the issuer is unreachable, also across a reload of the configuration.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from ipaddress import ip_address
from itertools import chain
from math import inf
from time import monotonic
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

_MAX_BYTES = 512 * 1024
_MAX_KEYS = 100
# The number of keys that are tried for a token without a key id.
_MAX_TRIED = 8
_SECONDS = 10.0
# The minimum number of seconds between two requests to one URL, as tokens with unknown key ids
# cause such requests.
_FLOOR = 30.0
# The seconds after which keys are fetched again: at least, at most, and without Cache-Control.
_LEAST, _MOST, _USUAL = 300.0, 3600.0, 600.0
_MAX_AGE = re.compile(r"(?:\A|,)[ \t]*max-age=\"?([0-9]{1,9})", re.IGNORECASE)
_DISCOVERY = "/.well-known/openid-configuration"
# The members of a public key (RFC 7518, section 6, and RFC 8037). All others are ignored.
_PUBLIC = ("kty", "n", "e", "crv", "x", "y")


class VerificationKey(NamedTuple):
    key: Any
    algorithms: frozenset[str]


KeysById = Mapping[str | None, tuple[VerificationKey, ...]]
"""Keys by their key id; None for keys without an id."""


def read_key_set(library: ModuleType, text: str | bytes, algorithms: Collection[str]) -> KeysById:
    """Return the usable keys of a JWKS document; raises ValueError for none or too many."""
    try:
        listed = json.loads(text)["keys"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError("the text is not a JSON Web Key Set") from None
    if not isinstance(listed, list) or len(listed) > _MAX_KEYS:
        raise ValueError(f"a key set is a list of at most {_MAX_KEYS} keys")
    found: dict[str | None, tuple[VerificationKey, ...]] = {}
    for each in listed:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        kid = each.get("kid")
        key = _public_key(library, each, algorithms)
        if key is not None and (kid is None or isinstance(kid, str)):
            found[kid] = (*found.get(kid, ()), key)
    if not found:
        raise ValueError(f"the key set has no key for {', '.join(algorithms)}")
    return found


def _public_key(
    library: ModuleType, written: Mapping[str, object], algorithms: Collection[str]
) -> VerificationKey | None:
    public = {name: written[name] for name in _PUBLIC if name in written}
    key, fitting = None, set()
    for name in algorithms:
        algorithm = library.get_algorithm_by_name(name)
        with suppress(ValueError, TypeError, KeyError, AttributeError, library.PyJWTError):
            if public.get("kty") == "oct" or written.get("alg", name) != name:
                continue
            key = algorithm.prepare_key(algorithm.from_jwk(public))
            if not algorithm.check_key_length(key):
                fitting.add(name)
    return VerificationKey(key, frozenset(fitting)) if fitting else None


def find_keys(keys: KeysById, kid: str | None, algorithm: str) -> list[VerificationKey]:
    """Return the keys that may have signed a token."""
    if kid is None:
        listed = [*chain.from_iterable(keys.values())]
    else:
        listed = [*(keys.get(kid) or keys.get(None, ()))]
    return [key for key in listed if algorithm in key.algorithms][:_MAX_TRIED]


class KeySet:
    """The public keys of an issuer, fetched from a URL.

    Args:
        library: PyJWT.
        url: the URL of the key set or, with `discover`, the issuer.

    Attributes:
        keys: the keys of the last successful fetch; empty before it.
        failure: why the last fetch failed; empty after a successful fetch.
        report: called after each fetch with the JWKS document and the seconds until the next fetch,
            or with an empty document after a failure.
    """

    def __init__(
        self, library: ModuleType, url: str, algorithms: tuple[str, ...], *, discover: bool
    ) -> None:
        self.url, self.discover = url, discover
        self.keys: KeysById = {}
        self.changes = 0
        self.failure = ""
        self.report: Callable[[KeySet, bytes, float], None] = lambda *_: None
        self._library, self._algorithms = library, algorithms
        self._due = self._floor = -inf
        self._task: asyncio.Task[None] | None = None

    @property
    def retry_after(self) -> int:
        """The number of whole seconds until the keys may be fetched again."""
        return max(1, round(self._floor - monotonic()))

    @property
    def may_fetch(self) -> bool:
        """Whether a request may wait for a fetch: one is under way, or the last one is long ago."""
        return self._task is not None or monotonic() >= self._floor

    def refresh(self) -> None:
        """Begin to fetch the keys again if they are due; the current keys stay in use."""
        now = monotonic()
        if self._task is None and now >= self._due and now >= self._floor:
            with suppress(RuntimeError):  # an explanation without an event loop fetches nothing
                self._start(asyncio.get_running_loop())

    async def fetch(self) -> None:
        """Fetch the keys; concurrent calls share one fetch. It ends within 10 seconds."""
        if self._task is None:
            self._start(asyncio.get_running_loop())
        assert self._task is not None
        await asyncio.shield(self._task)

    def adopt(self, document: bytes, seconds: float) -> None:
        """Use a JWKS document that another worker has fetched, for these seconds.

        With 0 seconds, for a worker that starts, the keys are in use and due to be fetched again.
        """
        now = monotonic()
        self._use(document, seconds)
        if seconds:
            self._floor = max(self._floor, now + _FLOOR)

    def _use(self, document: bytes, seconds: float) -> None:
        self.keys = read_key_set(self._library, document, self._algorithms)
        self.failure, self._due = "", monotonic() + seconds
        self.changes += 1

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._floor = monotonic() + _FLOOR
        self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        document, seconds = b"", 0.0
        try:
            async with asyncio.timeout(_SECONDS):
                document, seconds = await self._download()
            self._use(document, seconds)
        except TimeoutError:
            self.failure = f"no complete response arrived within {_SECONDS:g} seconds"
        except ClientError as error:
            self.failure = f"the connection failed: {error}"
        except (ValueError, OSError) as error:
            self.failure, document = str(error), b""
        finally:
            self._task = None
        self.report(self, document, seconds)

    async def _download(self) -> tuple[bytes, float]:
        """Return the JWKS document, and the seconds until it is fetched again."""
        # A new context: aiohttp creates its default one without certificate authorities.
        connector = TCPConnector(ssl=ssl.create_default_context())
        async with ClientSession(
            connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(_SECONDS)
        ) as session:
            url = self.url
            if self.discover:
                document, _ = await _get(session, url.rstrip("/") + _DISCOVERY)
                url = _key_set_url(document, self.url)
            content, control = await _get(session, url)
        given = _MAX_AGE.search(control)
        return content, _USUAL if given is None else min(max(int(given[1]), _LEAST), _MOST)


async def _get(session: ClientSession, url: str) -> tuple[bytes, str]:
    """Return body and Cache-Control; raises ValueError unless the response is a small 200."""
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{url} responds with {response.status}")
        content = b""
        async for piece in response.content.iter_any():
            content += piece
            if len(content) > _MAX_BYTES:
                raise ValueError(f"the response of {url} has more than {_MAX_BYTES} bytes")
        return content, response.headers.get("Cache-Control", "")


def _key_set_url(document: bytes, issuer: str) -> str:
    """Return the URL of the key set in a discovery document (OpenID Connect Discovery 1.0, 4.3)."""
    try:
        found = json.loads(document)
        named, url = found["issuer"], found["jwks_uri"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError("the discovery document has no issuer or no jwks_uri") from None
    if named != issuer:
        raise ValueError("the discovery document is of another issuer")
    if not isinstance(url, str):
        raise ValueError("the jwks_uri of the discovery document is not a URL")
    check_url(url)
    return url


def check_url(url: str) -> None:
    """Raise ValueError unless a URL has https; a loopback address may have http."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if host and parts.scheme == "https":
        return
    with suppress(ValueError):
        if parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback):
            return
    raise ValueError("is not an https:// URL; keys must come from an authenticated server")


_shared: WeakValueDictionary[object, KeySet] = WeakValueDictionary()


def shared_key_set(
    library: ModuleType, url: str, algorithms: tuple[str, ...], *, discover: bool
) -> KeySet:
    """Return the key set of a URL; the same as long as a configuration in use contains it."""
    key = url, discover
    found = _shared.get(key)
    if found is None:
        found = _shared[key] = KeySet(library, url, algorithms, discover=discover)
    return found


def adopt_keys(url: str, discover: bool, document: bytes, seconds: float) -> None:
    """Use the keys that another worker has fetched, if the configuration needs them here."""
    found = _shared.get((url, discover))
    if found is not None:
        found.adopt(document, seconds)
