"""Reloader: loads a changed gateway.yaml, or reports its mistakes and keeps the previous one."""

import asyncio
import gc
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path

import msgspec

from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.files import Stamp, stamp
from gateway.base.mistakes import ConfigError, Issue
from gateway.base.urls import without_secrets
from gateway.findings.refused_rules import RefusedRules
from gateway.http.certificates import outdated, validities
from gateway.observe import log
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load, read_files

# A changed file may be only half written, so it is read after it has not changed for _SETTLED
# seconds, but at the latest after _MAX_LOOKS checks.
_SETTLED = 0.2
_MAX_LOOKS = 100
# A missing file may be in the middle of a rename. After this many checks it counts as deleted.
_GONE_LOOKS = 10
# The maximum seconds to load a configuration before it is rejected: a module that it names may
# hang.
_LONGEST_LOAD = 120.0
# A check of the file that takes longer than this many seconds, and less than twice as many, is
# reported: its disk or network file system hangs.
_LONGEST_LOOK = 10.0

_Stamps = tuple[Stamp, ...]

# The maximum size of a configuration, in bytes, for which a full garbage collection after a reload
# is cheap.
_SMALL = 64 * 1024
# The number of reloads of larger configurations between two full collections. Each process uses a
# number between this one and twice this one, so that workers do not collect at the same time.
_RELOADS_A_COLLECTION = 8


class Loaded(msgspec.Struct, tag=True, frozen=True):
    """A loaded configuration: its text, and the contents of the files that it names.

    The supervisor sends it to each worker first, and after each change.

    Attributes:
        documents: the compiled OpenAPI documents that it needs, by location.
    """

    content: bytes
    files: Mapping[str, bytes]
    documents: Mapping[str, bytes] = {}


class Reloader:
    """Loads the configuration, and reloads it on request or after a change of its files.

    The files are gateway.yaml, the files that it includes, and the certificates, keys and tokens
    that it names. They are checked at an interval. Unlike file system notifications, this detects
    an edit in place, an atomic rename, a symlink to another file (as in mounted volumes) and
    changes on a network file system. The checks run in a thread, since a network file system may
    not respond for a long time. The thread wakes the event loop only after a change.

    Args:
        interval: the seconds between two checks; None to not check the files.

    Attributes:
        former: the text of the previous configuration; None if there was none.
        since: when the configuration took effect, in seconds since 1970.
        refused: the text of the file on disk that cannot be used, with its mistakes; None if the
            file is in force.

    Raises:
        ConfigError: the first configuration cannot be used.
    """

    def __init__(
        self,
        path: Path,
        environment: Mapping[str, str],
        interval: float | None = 0.5,
        given: Loaded | None = None,
    ) -> None:
        self._path = path
        self.folder = path.absolute().parent
        self.environment = environment
        self._interval = interval
        self._given = given
        self._unread = self._again = False
        self._requested, self._handled = threading.Event(), threading.Event()
        self._due = asyncio.Event()  # the files, or the given configuration, must be loaded
        self._watcher: threading.Thread | None = None
        self._check_began = inf  # the start of the current check, in monotonic seconds
        self._uncollected = 0
        self._collect_after = _RELOADS_A_COLLECTION + os.getpid() % _RELOADS_A_COLLECTION
        self._files: dict[Path, Stamp] = {}
        self._included: dict[Path, Stamp] = {}
        self._seen = self._stamps()
        self._documents: Mapping[str, bytes] = {}
        self._wrong: dict[str, str] = {}  # the mistakes in these documents
        self._filling = asyncio.Lock()
        self.content = b""
        self.former: bytes | None = None
        self.since = time.time()
        self.refused: RefusedRules | None = None
        with _NoCollection():
            text = self._read() if given is None else given.content
            self._first = self.latest = self._build(text, given)
            self._look_at(self.latest.files.stamps)
        self._adopt(text)
        _collect()
        self.loaded = self.rejected = 0

    @property
    def in_force(self) -> Loaded:
        return Loaded(self.content, self.latest.files.contents, self._documents)

    async def adopt(self, location: str, document: bytes) -> str:
        """Use a compiled document from now on; return what is wrong with it."""
        async with self._filling:
            if self._documents.get(location) != document:
                self._documents = {**self._documents, location: document}
                fill = partial(_filled, self.latest, {location: document})
                self._wrong |= {location: "", **await in_daemon_thread(fill)}
        log.event("document_loaded", location=without_secrets(location))
        return self._wrong.get(location, "")

    def reload(self, given: Loaded | None = None) -> None:
        """Reload the files even if they are unchanged, or load the given configuration instead."""
        self._given = given
        if given is None:
            self._requested.set()
        else:
            self._due.set()

    async def changes(self) -> AsyncIterator[Snapshot]:
        """Yield each new configuration; mistakes in the file are logged."""
        while True:
            await self._wait()
            content, given = b"", self._given
            try:
                with _NoCollection():
                    # In a thread, since requests continue while a large file is loaded.
                    async with self._filling, asyncio.timeout(_LONGEST_LOAD) as limit:
                        if given is None:
                            content = await in_daemon_thread(self._read)
                        else:
                            content = given.content
                        build = partial(self._build, content, given)
                        self.latest = await in_daemon_thread(build)
            except ConfigError as error:
                self._look_at(error.files or self._files)
                self._reject(content, error)
            except Exception as error:  # after any error, the next file can be loaded
                reason = f"cannot be loaded: {type(error).__name__}: {error}; undo the last change"
                if limit.expired():
                    self._unread = False  # each further attempt would occupy a thread
                    reason = (
                        f"is not loaded after {_LONGEST_LOAD:g} s; a module or file that it names "
                        f"may be blocking: correct that, and restart the gateway"
                    )
                self._reject(content, ConfigError(str(self._path), [Issue(0, 0, "", reason)]))
            else:
                self._look_at(self.latest.files.stamps)
                self._adopt(content)
                needed = {api.schemas[one] for api in self.latest.apis for one in api.documents}
                self._documents = {
                    location: one for location, one in self._documents.items() if location in needed
                }
                self.loaded += 1
                if self._interval is not None:  # in a worker, its supervisor warns
                    _warn(self._first, self.latest)
                yield self.latest
                # Reference cycles remain as garbage. There are few of them, such as groups that use
                # each other, while a collection among 10,000 endpoints blocks requests for a
                # quarter of a second.
                self._uncollected += 1
                if len(content) <= _SMALL or self._uncollected >= self._collect_after:
                    self._uncollected = 0
                    _collect()

    def _build(self, content: bytes, given: Loaded | None) -> Snapshot:
        source, folder = str(self._path), self.folder
        files = None if given is None else given.files
        rules = load(content, source, self.environment, folder, documents=False, files=files)
        # The documents known so far are used until the document process has read the new ones.
        if given is not None:
            self._documents = given.documents
        elif self._documents:
            self._documents = _former_documents(self.latest, rules, self._documents)
        self._wrong = _filled(rules, self._documents)
        if (
            given is None
        ):  # here, in a thread: the library for it takes a tenth of a second to import
            found = validities(rules.files)
            rules.derived["certificate_expiries"] = {
                path: each.ends for path, each in found.items()
            }
            for name, reason in outdated(rules.files, found):
                log.event("credential_outdated", "warning", credential=name, reason=reason)
            _warn_of_unchecked(rules)
        return rules

    def _adopt(self, content: bytes) -> None:
        if content != self.content:
            self.former, self.content = self.content or None, content
        self.since, self.refused = time.time(), None

    def _read(self) -> bytes:
        self._unread = True
        for _ in range(_MAX_LOOKS):
            before = stamp(self._path)
            content, self._included = read_files(self._path)
            included = self._included.items()
            if stamp(self._path) == before and all(stamp(one) == at for one, at in included):
                break
        self._unread = False
        return content

    def _reject(self, content: bytes, error: ConfigError) -> None:
        if self._again and self.refused and self.refused.issues == error.issues:
            return  # the file is still unreadable, and no reload was requested
        self.rejected += 1
        self.refused = RefusedRules(content, error.issues, time.time())
        for issue in error.report().splitlines():
            log.event("config_rejected", "error", issue=issue)

    async def _wait(self) -> None:
        if self._interval is not None and self._watcher is None:
            call = partial(self._watch, self._interval, asyncio.get_running_loop())
            self._watcher = threading.Thread(target=call, daemon=True)
            self._watcher.start()
        self._handled.set()
        longest = None if self._watcher is None else _LONGEST_LOOK
        while not self._due.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(longest):
                    await self._due.wait()
            if time.monotonic() - self._check_began >= _LONGEST_LOOK:
                self._report_hanging()
                await self._due.wait()
        self._due.clear()

    def _report_hanging(self) -> None:
        reason = (
            f"has not responded for {_LONGEST_LOOK:g} s, like a file on a network file system "
            f"that hangs; it is read again as soon as it responds"
        )
        self._again, self._unread = False, True
        self._reject(b"", ConfigError(str(self._path), [Issue(0, 0, "", reason)]))

    def _watch(self, interval: float, loop: asyncio.AbstractEventLoop) -> None:
        """Check the files until the event loop is closed; called in a thread."""
        while not loop.is_closed():
            asked = self._requested.wait(interval)
            stamps = self._check()
            again = not asked and stamps == self._seen
            if again and not self._unread:  # a short failure of the disk is not a change
                continue
            self._again, self._seen = again, self._settled(stamps)
            self._requested.clear()
            self._handled.clear()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._due.set)
            while not self._handled.wait(1.0) and not loop.is_closed():
                pass

    def _settled(self, stamps: _Stamps) -> _Stamps:
        for look in range(1, _MAX_LOOKS + 1):
            time.sleep(_SETTLED)
            before, stamps = stamps, self._check()
            if stamps == before and (None not in stamps or look >= _GONE_LOOKS):
                break
        return stamps

    def _check(self) -> _Stamps:
        self._check_began = time.monotonic()
        try:
            return self._stamps()
        finally:
            self._check_began = inf

    def _stamps(self) -> _Stamps:
        return stamp(self._path), *map(stamp, self._files)

    def _look_at(self, files: Mapping[Path, Stamp]) -> None:
        """From now on, also check these files, which changed if their stamp differs."""
        self._files = {**files, **self._included}
        self._seen = self._seen[0], *self._files.values()


class _NoCollection:
    """Disables the garbage collector temporarily.

    It would traverse all new objects of a large configuration again and again, and block requests
    each time. Loaded objects are frozen: hardly any of them form reference cycles, so they are
    freed with their last reference.
    """

    def __enter__(self) -> None:
        gc.disable()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            gc.freeze()  # before a collection could traverse them all
        gc.enable()


def _collect() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _former_documents(
    former: Snapshot, rules: Snapshot, documents: Mapping[str, bytes]
) -> Mapping[str, bytes]:
    """Add documents of the same versions for locations that are not read yet."""
    schemas = {(api.name, one): where for api in former.apis for one, where in api.schemas.items()}
    moved = {
        api.schemas[one]: documents[schemas[api.name, one]]
        for api in rules.apis
        for one in api.documents
        if schemas.get((api.name, one)) in documents
    }
    return {**moved, **documents}


def _filled(rules: Snapshot, documents: Mapping[str, bytes]) -> dict[str, str]:
    if not documents:
        return {}
    # Imported here, since few gateways need documents for conversions.
    from gateway.verify.documented_versions import fill_documents

    return fill_documents(rules, documents)


def _warn_of_unchecked(rules: Snapshot) -> None:
    for name, service in rules.services.items():
        if service.tls is not None and service.tls.verify_mode == ssl.CERT_NONE:
            reason = "any certificate of the service is accepted, since tls.verify is false"
            log.event("tls_unverified", "warning", service=name, reason=reason)


def _fixed(rules: Snapshot) -> dict[str, object]:
    """Return the settings that a reload cannot change, by key."""
    return {
        "state": rules.state,
        "workers": rules.workers,
        "admin.tls": rules.admin.tls is None,
        "listen": [each.address for each in rules.listen],
    }


def _warn(first: Snapshot, latest: Snapshot) -> None:
    after = _fixed(latest)
    for key, value in _fixed(first).items():
        if value != after[key]:
            reason = (
                f"'{key}' changed, which takes effect at a restart; all other changes are in force"
            )
            log.event("restart_needed", "warning", reason=reason)
