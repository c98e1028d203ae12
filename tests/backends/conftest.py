"""The two person backends as real processes."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import pytest
from aiohttp import ClientSession

Launch = Callable[..., tuple[subprocess.Popen[str], str]]


def _environment(backend: str, extra: Mapping[str, str | bytes]) -> dict[bytes, bytes]:
    """Return this environment without what would set a backend, on a free port, with the extra."""
    kept = {
        name: value
        for name, value in os.environb.items()
        if not name.startswith((b"BACKEND_", b"PERSON_"))
    }
    port = {f"{backend.upper()}_PORT": "0"}
    return kept | {
        os.fsencode(name): os.fsencode(value) for name, value in {**port, **extra}.items()
    }


@contextmanager
def _process(backend: str, extra: Mapping[str, str | bytes]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", backend],
        env=_environment(backend, extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _url(process: subprocess.Popen[str]) -> str:
    """Return where the process listens, as its first log line says, or fail with its stderr."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    entry: dict[str, Any] = json.loads(line)
    assert entry["event"] == "listening"
    return str(entry["url"])


@pytest.fixture(scope="session", params=["backend_v1", "backend_v2"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each of the two programs."""
    return str(request.param)


@pytest.fixture(scope="session")
def url(backend: str) -> Iterator[str]:
    """Where the backend listens that is shared by the tests that leave it as it was."""
    with _process(backend, {}) as process:
        yield _url(process)


@pytest.fixture
async def session(url: str) -> AsyncIterator[ClientSession]:
    """Connect a client to the shared backend."""
    async with ClientSession(url) as client:
        yield client


@pytest.fixture
def launch(backend: str) -> Iterator[Launch]:
    """Start a backend of the test's own, with this environment; give the process and its URL."""
    with ExitStack() as stack:

        def start(extra: Mapping[str, str | bytes]) -> tuple[subprocess.Popen[str], str]:
            process = stack.enter_context(_process(backend, extra))
            return process, _url(process)

        yield start


@pytest.fixture
def refused(
    backend: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run a backend that cannot start, in this process; give its exit status, stdout and stderr."""

    def finish(extra: Mapping[str, str | bytes]) -> tuple[int, str, str]:
        monkeypatch.setattr(os, "environ", _decoded(_environment(backend, extra)))
        status = import_module(f"{backend}.__main__").main()
        return status, *capsys.readouterr()

    return finish


def _decoded(environment: Mapping[bytes, bytes]) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}


@pytest.fixture
def run(backend: str) -> Callable[..., tuple[int, str, str]]:
    """Run a backend that ends by itself; give its exit status, stdout and stderr."""

    def finish(extra: Mapping[str, str | bytes]) -> tuple[int, str, str]:
        with _process(backend, extra) as process:
            out, err = process.communicate(timeout=60)
            return process.returncode, out, err

    return finish
