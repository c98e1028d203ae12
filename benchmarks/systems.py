"""The programs under test and the backends: their command lines and files."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[1]
_CONFIGS = Path(__file__).parent / "configs"
# Debian installs servers outside the PATH of users; other programs are in the environment.
_PLACES = f"{Path(sys.executable).parent}:/usr/sbin:/usr/local/sbin"


@dataclass(frozen=True, slots=True)
class System:
    """A program that listens on a port of 127.0.0.1.

    Attributes:
        files: the contents of the files in its folder, by name.
        environment: its environment variables.
        code: the folder from which Python imports the packages of this project.
    """

    command: tuple[str, ...]
    port: int
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    code: Path = ROOT


def find(program: str) -> str | None:
    """Return the path of a program, or None if it is not installed."""
    return shutil.which(program) or shutil.which(program, path=_PLACES)


def backend(port: int, *, chain: str = "", people: str = "") -> System:
    """Return the backend for small bodies, with the given bodies of `/chain` and `/people`."""
    files = {"backend.conf": _config("backend.conf", port=port, chain=chain), "people.json": people}
    return System((*_NGINX, "backend.conf"), port, files)


def bulk(port: int) -> System:
    """Return the backend for large bodies."""
    return System((sys.executable, "-m", "benchmarks.bulk", str(port)), port)


def nginx(port: int, backend: int) -> System:
    """Return nginx as a plain proxy."""
    files = {"nginx.conf": _config("nginx.conf", port=port, backend=backend)}
    return System((*_NGINX, "nginx.conf"), port, files)


def haproxy(port: int, backend: int) -> System:
    """Return HAProxy as a plain proxy."""
    files = {"haproxy.cfg": _config("haproxy.cfg", port=port, backend=backend)}
    return System(("haproxy", "-db", "-f", "haproxy.cfg"), port, files)


def envoy(port: int, backend: int) -> System:
    """Return Envoy with one worker, routing by version as the shipped gateway.yaml does."""
    return _envoy(port, _config("envoy.yaml", port=port, backend=backend))


def _envoy(port: int, text: str) -> System:
    command = ("envoy", "--config-path", "envoy.yaml", "--concurrency", "1")
    quiet = ("--disable-hot-restart", "--log-level", "error")
    return System((*command, *quiet), port, {"envoy.yaml": text})


def caddy(port: int, backend: int) -> System:
    """Return Caddy, routing by version as the shipped gateway.yaml does."""
    files = {"Caddyfile": _config("Caddyfile", port=port, backend=backend)}
    # What it would keep for its next start stays in its folder.
    environment = {"XDG_CONFIG_HOME": ".", "XDG_DATA_HOME": "."}
    return System(("caddy", "run", "--config", "Caddyfile"), port, files, environment)


def traefik(port: int, backend: int) -> System:
    """Return Traefik, routing by version as the shipped gateway.yaml does."""
    files = {
        "traefik.yaml": _config("traefik.yaml", port=port),
        "traefik-routes.yaml": _config("traefik-routes.yaml", backend=backend),
    }
    return System(("traefik", "--configfile=traefik.yaml"), port, files)


def gateway(
    port: int, backend: int, rules: str, *, workers: int = 1, admin: int = 0, code: Path = ROOT
) -> System:
    """Return the gateway whose package is in `code`; BACKEND has the address of the backend."""
    environment = {
        "GATEWAY_PORT": str(port),
        "GATEWAY_ADMIN_PORT": str(admin),
        "GATEWAY_CONFIG": "gateway.yaml",
        "GATEWAY_WORKERS": str(workers),
        **_addresses(backend),
    }
    files = {"gateway.yaml": rules}
    return System((sys.executable, "-m", "gateway"), port, files, environment, code)


def _addresses(backend: int) -> dict[str, str]:
    """Return the address variables of the shipped and of the generated configurations."""
    return dict.fromkeys(("PERSON_V1", "PERSON_V2", "BACKEND"), f"127.0.0.1:{backend}")


_NGINX = ("nginx", "-p", ".", "-e", "nginx.err", "-c")


def _config(name: str, **values: object) -> str:
    return Template((_CONFIGS / name).read_text()).substitute(values)
