"""The command `export`: writes files for Kubernetes, Grafana and Prometheus."""

import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from gateway import __version__
from gateway.cli.manifests.kubernetes import (
    Attachment,
    Deployed,
    Manifest,
    exported_files,
    notes,
    objects,
    stream,
    with_token,
)
from gateway.cli.manifests.monitoring import alerts, dashboard
from gateway.cli.shared.arguments import CommandError, add_actions, add_rules_file, rules_file
from gateway.rules.load import load_file

HELP = "write files for Kubernetes, Grafana or Prometheus"
# Every written file begins with these words, so that a later run recognizes its own files.
_MARK = "Written by version-gateway export"
_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?\Z")
# A host name of the Gateway API (v1, Hostname), with an optional wildcard.
_HOSTNAME = re.compile(
    r"(?=.{1,253}\Z)(?:\*\.)?[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z"
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0; 1 the file cannot be used."
    actions = add_actions(parser)
    _add_kubernetes(
        actions.add_parser("kubernetes", help="objects that run the gateway in a cluster")
    )
    versions = "for the versions in the configuration"
    _add_monitoring(actions.add_parser("grafana", help=f"a Grafana dashboard {versions}"))
    alerting = actions.add_parser("alerts", help=f"Prometheus alerts {versions}")
    _add_monitoring(alerting)
    alerting.add_argument(
        "--objective",
        type=float,
        default=99.9,
        metavar="PERCENT",
        help="the percentage of successful requests; 99.9",
    )


def _add_kubernetes(parser: ArgumentParser) -> None:
    add_rules_file(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder for the files; default: one stream"
    )
    parser.add_argument("--name", default="version-gateway", help="of the objects")
    parser.add_argument("--namespace", default="", metavar="NAME", help="of the objects")
    parser.add_argument("--image", default=f"version-gateway:{__version__}", help="of the gateway")
    parser.add_argument(
        "--grace", type=float, default=10.0, metavar="SECONDS", help="for requests in flight; 10"
    )
    parser.add_argument(
        "--gateway-api", action="store_true", help="add an HTTPRoute of the Gateway API"
    )
    parser.add_argument(
        "--parent",
        default="gateway",
        metavar="[NAMESPACE/]NAME",
        help="the Gateway of the route; 'gateway'",
    )
    parser.add_argument(
        "--hostname",
        action="append",
        default=[],
        metavar="NAME",
        help="of the route; may be repeated",
    )


def _add_monitoring(parser: ArgumentParser) -> None:
    add_rules_file(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write a file; without it, standard output"
    )


def run(arguments: Namespace) -> int:
    """Write the files; print notes about the deployment on standard error."""
    path = rules_file(arguments)
    formats = {
        "kubernetes": _kubernetes,
        "grafana": _grafana,
        "alerts": _alerts,
    }
    return formats[arguments.action](path, arguments)


def _kubernetes(path: Path, arguments: Namespace) -> int:

    snapshot = load_file(path, os.environ)
    namespace, _, parent = arguments.parent.rpartition("/")
    _check(arguments, namespace, parent)
    files = exported_files(path)
    if snapshot.admin.open:
        files = with_token(files)
    deployed = Deployed(
        snapshot, files, arguments.image, arguments.name, arguments.namespace, arguments.grace
    )
    attachment = None
    if arguments.gateway_api:
        attachment = Attachment(parent, namespace, tuple(arguments.hostname))
    manifests, lines = objects(deployed, attachment), notes(deployed)
    marked = [one._replace(comments=(f"{_MARK} kubernetes.", *one.comments)) for one in manifests]
    if arguments.out is None:
        sys.stdout.write(stream(marked))
    else:
        _write(arguments.out, marked)
    _tell(lines)
    return 0


def _check(arguments: Namespace, namespace: str, parent: str) -> None:
    """Raise ValueError for an invalid object name, host name or grace period."""
    for name in filter(None, (arguments.name, arguments.namespace, namespace, parent or "/")):
        if not _NAME.match(name):
            raise ValueError(
                f"'{name}' is not a valid object name; use lower-case letters, digits and dashes,"
                " 40 at most"
            )
    for name in arguments.hostname:
        if not _HOSTNAME.match(name):
            raise ValueError(
                f"--hostname '{name}': must be a host name in lower case, such as api.example.com"
                " or *.example.com"
            )
    if not 0 <= arguments.grace <= 86_400:
        raise ValueError(f"--grace {arguments.grace:g}: must be from 0 to 86400 seconds")


def _grafana(path: Path, arguments: Namespace) -> int:
    made = json.dumps(dashboard(load_file(path, os.environ)), indent=2, ensure_ascii=False)
    return _put(f"{made}\n", arguments.out)


def _alerts(path: Path, arguments: Namespace) -> int:
    objective: float = arguments.objective
    if not 0 < objective < 100:
        raise ValueError(f"--objective {objective:g}: must be above 0 and below 100 percent")
    made = alerts(load_file(path, os.environ), objective / 100)
    return _put(Manifest("alerts", (f"{_MARK} alerts.",), made).text, arguments.out)


def _put(text: str, path: Path | None) -> int:
    if path is None:
        sys.stdout.write(text)
        return 0
    try:
        path.write_text(text)
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}; name another file in --out"
        ) from None
    return 0


def _write(folder: Path, manifests: Iterable[Manifest]) -> None:
    """Write one file per manifest; remove the files of earlier runs that have no manifest now."""
    texts = {f"{manifest.name}.yaml": manifest.text for manifest in manifests}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("*.yaml")):
            if old.name not in texts and _is_ours(old):
                old.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text)
    except OSError as error:
        raise CommandError(
            f"{folder} cannot be written: {error.strerror}; name another folder in --out"
        ) from None


def _is_ours(file: Path) -> bool:
    return file.is_file() and file.read_bytes().startswith(f"# {_MARK}".encode())


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stderr.write(f"{line}\n")
