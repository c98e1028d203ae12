"""The whole stack as real programs, with operator actions and failures."""

import asyncio
import signal
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from random import Random, randint
from time import monotonic
from typing import Any

import msgspec
import psutil

from tests.gateway.authority import Authority
from tests.gateway.dns import NameServer
from tests.gateway.kit import DEADLINE, Program, children, start_program
from tests.gateway.talk import soon
from tests.soak.load import Kill, Load

WORKERS = 2
VAULT = "vault.test"
ADDRESSES = tuple(f"127.0.3.{number}" for number in range(1, 7))
# The records of the name server have a time to live of 1 s. The rest is for a loaded machine.
RESOLVED_WITHIN = 5.0

RULES = """
workers: {workers}
listen:
  - {{ address: "127.0.0.1:0" }}
  - address: "127.0.0.2:0"
    tls: {{ certificates: [ {{ certificate: ../tls/gateway.pem, key: ../tls/gateway.key }} ] }}
services:
  vault: {{ targets: ["https://{vault_host}:{vault}"], tls: {{ ca: ../tls/ca.pem }} }}
  person_v1: {{ targets: ["http://127.0.0.1:{person_v1}"] }}
  person_v2:
    targets: [{person_v2}]
    ejection: {{ failures: 3, seconds: 0.2, longest: 0.4 }}
    health: {{ path: /healthz, interval: 0.2, down_after: 2, up_after: 1 }}
  users: {{ targets: ["http://127.0.0.1:{users}"] }}
  mirror: {{ targets: ["http://127.0.0.1:{mirror}"] }}
apis:
  person:
    upstream_path: /person
    endpoints:
      - {{ path: "/v{{version}}/person", version: {{ in: path }}, methods: [GET] }}
      - {{ path: /person/param, version: {{ in: query, name: version }}, methods: [GET] }}
      - {{ path: /person/header, version: {{ in: header, name: X-API-VERSION }}, methods: [GET] }}
      - path: /person/accept
        version:
          in: accept
          media_type: "application/vnd.comp.app-v{{version}}+json"
          response_type: vendor
        methods: [GET]
    versions: {{ "1": {first}, "2": {{ service: person_v2 }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ join: {{ fields: [name.firstName, name.lastName], into: name }} ]
  catalog:
    upstream_path: /catalog
    endpoints: [ {{ path: "/v{{version}}/catalog", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: mirror }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ join: {{ fields: [name.firstName, name.lastName], into: name }} ]
  users:
    service: users
    endpoints: [ {{ path: /users, methods: [POST] }}, {{ path: "/users/{{id}}", methods: [GET] }} ]
  vault:
    service: vault
    endpoints: [ {{ path: "/vault/{{rest*}}", upstream_path: "/{{rest*}}" }} ]
  mirror:
    service: mirror
    endpoints: [ {{ path: "/echo/{{token}}" }}, {{ path: /bytes }}, {{ path: /socket }} ]
"""


@dataclass(frozen=True)
class Rules:
    """The settings that the operator changes: the service of version 1, and those of version 2."""

    ports: dict[str, int]
    via: bool = False
    targets: tuple[str, ...] = ("person_v2_a", "person_v2_b")
    vault_host: str = "localhost"

    def __str__(self) -> str:
        ports = {name: self.ports[name] for name in ("person_v1", "users", "mirror", "vault")}
        second = ", ".join(f'"http://127.0.0.1:{self.ports[name]}"' for name in self.targets)
        first = '{ via: "2" }' if self.via else "{ service: person_v1 }"
        return RULES.format(
            workers=WORKERS, person_v2=second, first=first, vault_host=self.vault_host, **ports
        )


class Journal:
    """The gateway's log, read while it grows; request lines are counted and not stored.

    Attributes:
        causes: why a service did not respond, by the id of the request.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self.counts: Counter[str] = Counter()
        self.others: list[dict[str, Any]] = []
        self.causes: dict[str, str] = {}

    def read(self) -> Counter[str]:
        """Read the new lines; return the number of lines of each event, `log` for failures."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            if b'"event":"request"' in line and b'"status":500' not in line:
                self.counts["request"] += 1
                if b'"status":50' in line:
                    entry = msgspec.json.decode(line)
                    self.causes[entry["request_id"]] = entry.get("cause", "")
                continue
            entry = msgspec.json.decode(line)
            self.counts[entry["event"]] += 1
            if entry["event"] in ("log", "request", "config_rejected"):
                self.others.append(entry)
        return self.counts

    def close(self) -> None:
        self._file.close()


@dataclass
class House:
    """The running stack.

    Attributes:
        backends: the backends by their names in `Rules`; a restart replaces the program.
        names: the socket of the name server that the gateway uses, if it runs with CENSUS.
    """

    folder: Path
    stack: ExitStack
    backends: dict[str, Program]
    gateway: Program
    journal: Journal
    rules: Rules
    names: socket.socket
    load: Load = field(init=False)
    server: NameServer = field(init=False)

    def __post_init__(self) -> None:
        (entry,) = self.gateway.log("listening")
        host, _, port = str(entry["others"][0]).rpartition("/")[2].rpartition(":")
        tls = ssl.create_default_context(cafile=self.folder / "tls" / "ca.pem")
        self.load = Load(self.gateway, (host, int(port)), tls)

    @property
    def supervisor(self) -> psutil.Process:
        return psutil.Process(self.gateway.process.pid)

    @property
    def workers(self) -> list[psutil.Process]:
        """The worker processes, the oldest first."""
        return sorted(children(self.gateway), key=lambda worker: worker.create_time())

    async def reload(
        self, *, via: bool | None = None, targets: tuple[str, ...] | None = None
    ) -> None:
        """Write changed rules, signal the gateway, and wait until all workers use them."""
        assert self.gateway.config is not None
        rules = self.rules
        via = rules.via if via is None else via
        self.rules = replace(rules, via=via, targets=targets or rules.targets)
        before = Counter(self.journal.read())
        fresh = self.gateway.config.with_suffix(".new")
        fresh.write_text(str(self.rules))
        fresh.rename(self.gateway.config)
        self.gateway.process.send_signal(signal.SIGHUP)

        def loaded() -> bool:
            # The replacement of a worker that died starts with these rules and logs nothing about
            # them.
            since = self.journal.read() - before
            replaced = since["worker_replaced"] >= since["worker_died"]
            return replaced and since["config_loaded"] + since["worker_died"] >= WORKERS

        await self._until(loaded)

    async def toggle(self) -> None:
        await self.reload(via=not self.rules.via)

    async def resolve_names(self) -> None:
        """Start the name server, and configure the vault by its name."""
        loop, self.server = asyncio.get_running_loop(), NameServer()
        await loop.create_datagram_endpoint(lambda: self.server, sock=self.names)
        await self.readdress(Random(1))
        self.rules = replace(self.rules, vault_host=VAULT)
        await self.reload()

    async def readdress(self, random: Random) -> None:
        """Change the addresses of the vault; requests may reach former ones for another second."""
        addresses = random.sample(ADDRESSES, random.randint(1, len(ADDRESSES)))
        self.server.addresses[VAULT] = tuple(addresses)
        latest = monotonic() + RESOLVED_WITHIN
        former = {each: min(until, latest) for each, until in self.load.seen.items()}
        self.load.seen = former | dict.fromkeys(addresses, inf)

    async def kill_worker(self) -> None:
        """Kill the newer worker, and wait until another one serves in its place."""
        worker = self.workers[-1]
        replaced = self.journal.read()["worker_replaced"] + 1
        # The worker is stopped first, so all its connections are known; only these may be lost.
        worker.suspend()
        held = [each.raddr.port for each in worker.net_connections("tcp") if each.raddr]
        worker.kill()
        now = monotonic()
        self.load.cut.update(dict.fromkeys(held, now))
        await self._until(lambda: self.journal.read()["worker_replaced"] >= replaced)

    async def restart(self, name: str) -> None:
        alone = not name.startswith("person_v2")
        services = {name} if alone else {"person_v1", "person_v2"}
        program = self.backends[name]
        self.load.kills.append(kill := Kill(frozenset(services), monotonic()))
        program.process.kill()
        await asyncio.to_thread(program.process.wait)
        if not alone:  # the other target now responds for both
            kill.until = monotonic()
        await self.start(name)
        kill.until = min(kill.until, monotonic())

    async def roll(self, name: str) -> None:
        every = self.rules.targets
        others = tuple(target for target in every if target != name)
        await self.reload(targets=others)
        process = self.backends[name].process
        process.terminate()
        assert await asyncio.to_thread(process.wait) == 0
        await self.start(name)
        await self.reload(targets=every)

    async def start(self, name: str) -> None:
        port = self.backends[name].port
        self.backends[name] = await asyncio.to_thread(
            start_backend, self.stack, self.folder, name, port
        )

    @contextmanager
    def twin(self) -> Iterator["House"]:
        with ExitStack() as stack:
            yield _house(stack, self.folder / "twin", self.backends)

    def end_backends(self) -> None:
        """Stop all backends; this closes all connections from the gateway to them."""
        for program in self.backends.values():
            program.process.kill()
            program.process.wait()

    def unexplained(self) -> list[str]:
        """Return the responses that are missing without a kill, with causes from the log."""
        causes = self.journal.causes
        return [
            f"no kill explains: {text}; {request_id} {causes.get(request_id, 'not logged')}"
            for text, request_id in self.load.unexplained
        ]

    def end_gateway(self) -> int:
        self.gateway.process.terminate()
        return self.gateway.process.wait(DEADLINE)

    async def _until(self, condition: Callable[[], bool]) -> None:
        try:
            await soon(lambda: condition() or self.gateway.process.poll() is not None)
        except AssertionError as error:
            counts, last = dict(self.journal.read()), self.journal.others[-3:]
            raise AssertionError(
                f"{error}; the log has {counts}, and last of its own {last}"
            ) from None
        assert self.gateway.process.poll() is None, "the gateway died"


PROGRAMS = {
    "person_v1": ("backend_v1", "BACKEND_V1_PORT"),
    "person_v2_a": ("backend_v2", "BACKEND_V2_PORT"),
    "person_v2_b": ("backend_v2", "BACKEND_V2_PORT"),
    "users": ("users_service", "USERS_PORT"),
    "mirror": ("tests.soak.mirror", "MIRROR_PORT"),
    "vault": ("tests.soak.mirror", "MIRROR_PORT"),
}


def start_backend(stack: ExitStack, folder: Path, name: str, port: int = 0) -> Program:
    """Start one of the backends, on a given port or on one that it can use again later."""
    program, variable = PROGRAMS[name]
    variables = {variable: str(port or _port())}
    if name == "vault":  # a service with TLS
        variables["MIRROR_CERTIFICATE"] = str(folder / "tls" / "vault")
        variables["MIRROR_HOST"] = "0.0.0.0"  # noqa: S104  # it has many loopback addresses
    return start_program(stack, folder / name, program, **variables)


def _port() -> int:
    # Use a port below the range for outgoing connections (net.ipv4.ip_local_port_range). Otherwise,
    # one of these could occupy the port while a backend is restarted.
    while True:
        port = randint(16_384, 32_767)
        with suppress(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            return port


@contextmanager
def open_house(folder: Path, **variables: str) -> Iterator[House]:
    authority = Authority(folder / "tls")
    authority.write("gateway", "localhost")
    authority.write("vault", "localhost", VAULT)
    with ExitStack() as stack:
        backends = {name: start_backend(stack, folder, name) for name in PROGRAMS}
        yield _house(stack, folder, backends, **variables)


def _house(stack: ExitStack, folder: Path, backends: dict[str, Program], **variables: str) -> House:
    if not (folder / "tls").exists():  # the folder of a twin is inside the first gateway's folder
        folder.mkdir(exist_ok=True)
        (folder / "tls").symlink_to(folder.parent / "tls")
    rules = Rules({name: program.port for name, program in backends.items()})
    config = folder / "gateway" / "gateway.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(str(rules))
    names = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    names.bind(("127.0.0.1", 0))
    variables["SOAK_NAME_SERVER"] = str(names.getsockname()[1])
    gateway = start_program(stack, config.parent, "gateway", GATEWAY_WORKERS="", **variables)
    gateway.config = config
    journal = Journal(gateway.output)
    stack.callback(journal.close)
    return House(folder, stack, backends, gateway, journal, rules, names)
