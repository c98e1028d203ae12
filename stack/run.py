"""Runs the programs in the Procfile together: starts all of them, and stops all of them.

    python stack/run.py

Exit status: 0 after a requested stop (Ctrl-C, SIGTERM, SIGHUP); 1 if a program ended, was not ready
in time, or was killed; 2 if a setting is invalid. A second Ctrl-C kills the remaining programs.

The Procfile runners on PyPI are not suitable. They return the exit status of the ended program,
kill programs that are still finishing requests, and do not detect when all programs are ready.
"""

import asyncio
import contextlib
import ctypes
import os
import shlex
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
READY_WITHIN = 30.0
END_WITHIN = 30.0
"""The seconds from SIGTERM until a program is killed. They exceed the grace period."""
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class RefusedError(Exception):
    """The stack cannot start. The message has one line for each invalid setting."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket of a program; {prefix}_HOST and {prefix}_PORT set its address."""

    program: str
    prefix: str
    default_port: int
    target: str = ""
    """The variable in gateway.yaml that gets this address; empty if there is none."""


LISTENERS = (
    Listener("backend_v1", "BACKEND_V1", 8001, target="PERSON_V1"),
    Listener("backend_v2", "BACKEND_V2", 8002, target="PERSON_V2"),
    Listener("users_service", "USERS", 8003, target="USERS"),
    Listener("gateway", "GATEWAY", 8080),
    Listener("gateway", "GATEWAY_ADMIN", 8090),
)

BANNER = """
All four are ready:

  gateway        http://{GATEWAY}
  its page       http://{GATEWAY_ADMIN}
  backend_v1     http://{BACKEND_V1}
  backend_v2     http://{BACKEND_V2}
  users_service  http://{USERS}

Try:

  curl -i http://{GATEWAY}/v1/person
  curl -i -H 'X-API-VERSION: 2' http://{GATEWAY}/person/header
  curl -i -H 'Content-Type: application/json' -d '{{"name": "Alice", "birthDate": "1990-12-31"}}' http://{GATEWAY}/users

Ctrl-C ends all four.

"""


def read_procfile(text: str) -> dict[str, list[str]]:
    lines = (line.split(":", 1) for line in text.splitlines() if line)
    return {name: shlex.split(command) for name, command in lines}


def choose_ports(
    environment: Mapping[str, str], kept: contextlib.ExitStack
) -> tuple[dict[str, str], dict[str, str]]:
    """Choose all ports before the programs start; raises RefusedError.

    Port 0 is replaced by a free port, which stays bound until `kept` is closed. The programs can
    still listen on this port, but outgoing connections cannot use it. Return the environment, and
    the address (`host:port`) of each listener by prefix.
    """
    settled = dict(environment)
    addresses = {}
    wrong = []
    with contextlib.ExitStack() as held:  # held until all ports are chosen, so that they differ
        for listener in LISTENERS:
            variable = f"{listener.prefix}_PORT"
            host = environment.get(f"{listener.prefix}_HOST") or "127.0.0.1"
            port = environment.get(variable) or str(listener.default_port)
            if not (port.isascii() and port.isdigit() and int(port) <= 65535):
                right = "a whole number from 0 (any free port) to 65535"
                wrong.append(f"{variable}={port!r}: must be {right}")
                continue
            try:
                if not int(port):
                    port = kept.enter_context(_bound(host, 0)).getsockname()[1]
                held.enter_context(_bound(host, int(port))).listen()
            except OSError as error:
                wrong.append(
                    f"{listener.program} cannot listen on {host}:{port} ({error.strerror});"
                    f" free it, or choose another port with {variable}"
                )
                continue
            settled[variable] = str(int(port))
            addresses[listener.prefix] = _address(host, settled[variable])
            if listener.target:
                settled.setdefault(listener.target, addresses[listener.prefix])
    if wrong:
        raise RefusedError("\n".join(wrong))
    # Make `python` in the Procfile the interpreter that runs this script.
    settled["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    return settled, addresses


def _bound(host: str, port: int) -> socket.socket:
    with contextlib.ExitStack() as failed:
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        failed.callback(bound.close)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the programs do
        bound.bind((host, port))
        failed.pop_all()
    return bound


def _address(host: str, port: str) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def run(environment: Mapping[str, str]) -> int:
    """Run all programs until one ends or a stop is requested; return the exit status."""
    stop, kill_now = asyncio.Event(), asyncio.Event()
    processes: dict[str, Process] = {}
    with contextlib.ExitStack() as kept:
        settled, addresses = choose_ports(environment, kept)
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(
                number, lambda: (kill_now if stop.is_set() else stop).set()
            )
        try:
            for name, command in read_procfile((ROOT / "Procfile").read_text()).items():
                processes[name] = await _start(command, settled)
            fault = await _serve(processes, addresses, stop)
            if fault:
                _complain(f"{fault}; ending the others")
        finally:
            killed = await _end(processes, kill_now)
    return 1 if fault or killed else 0


async def _start(command: list[str], environment: Mapping[str, str]) -> Process:
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C signals only this runner
        preexec_fn=_end_with_the_runner,
    )


def _end_with_the_runner() -> None:
    """Make Linux send SIGTERM to this child process when the runner ends, even by SIGKILL."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def _serve(
    processes: Mapping[str, Process], addresses: Mapping[str, str], stop: asyncio.Event
) -> str | None:
    """Wait until the stack must end; return the error, or None after a requested stop."""
    ends = {name: asyncio.create_task(process.wait()) for name, process in processes.items()}
    asked = asyncio.create_task(stop.wait())
    # If a program has two listeners, its health check is on the second one.
    waiting = {listener.program: addresses[listener.prefix] for listener in LISTENERS}
    ready = asyncio.create_task(_until_ready(waiting))

    first = asyncio.FIRST_COMPLETED
    over: set[asyncio.Task[Any]] = {asked, *ends.values()}
    await asyncio.wait({ready, *over}, timeout=READY_WITHIN, return_when=first)
    if ready.done():
        _say(BANNER.format_map(addresses))
        await asyncio.wait(over, return_when=first)
    for name, end in ends.items():
        if end.done():
            return f"{name} ended unexpectedly ({_how(end.result())})"
    if asked.done():
        return None
    return f"not ready after {READY_WITHIN:.0f} seconds: {', '.join(waiting)}"


async def _until_ready(waiting: dict[str, str]) -> None:
    """Remove each program from `waiting` when its /readyz returns 200."""
    while waiting:
        for name, address in list(waiting.items()):
            if await _is_ready(address):
                del waiting[name]
        await asyncio.sleep(0.05)


async def _is_ready(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            with contextlib.closing(writer):
                writer.write(f"GET /readyz HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
                return (await reader.readline()).split()[1:2] == [b"200"]
    except (OSError, TimeoutError):
        return False


async def _end(processes: Mapping[str, Process], kill_now: asyncio.Event) -> bool:
    """End the programs in reverse order; return whether a program was killed.

    In this order, the gateway finishes its requests while the services are still running.
    """
    killed = False
    killing = asyncio.create_task(kill_now.wait())
    for name, process in reversed(list(processes.items())):
        end = asyncio.create_task(process.wait())
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({end, killing}, timeout=END_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is None:
            _complain(f"{name} did not end and is killed")
            killed = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await end
    return killed


def _how(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.writelines(f"stack: {line}\n" for line in text.splitlines())


def main() -> int:
    try:
        return asyncio.run(run(os.environ))
    except RefusedError as refusal:
        _complain(str(refusal))
        return 2


if __name__ == "__main__":
    sys.exit(main())
