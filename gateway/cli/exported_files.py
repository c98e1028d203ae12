"""The files that an export deploys: the rules, and what lies beside them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gateway.base.mistakes import ConfigError
from gateway.cli.export.deployed import ExportedFiles
from gateway.rules.load import read_rules
from gateway.rules.root import Config
from gateway.rules.source import Data, read
from gateway.rules.variables import names
from gateway.rules.written_secrets import comment_lines, secret_lines

# The parts of the rules that no route depends on.
_APART = frozenset({"state", "fleet", "clients", "workers", "limits", "trusted_proxies", "bypass"})
_APART |= {"admin", "notify", "cors"}
# So many lines are named.
_LISTED = 10
ADMIN_TOKEN = "GATEWAY_ADMIN_TOKEN"  # noqa: S105  # the name of a variable
"""The variable with the token of the admin port that an export adds; commands send it."""
_ADDED = f"""\

# Added by the export: others than the pod reach its admin port.
admin:
  tokens:
    operator: {{ right: operate, token: "${{{ADMIN_TOKEN}}}" }}
"""


def exported_files(path: Path) -> ExportedFiles:
    """Return what to deploy of a file of rules that can be loaded.

    Raises:
        ConfigError: the file cannot be read.
        ValueError: it has a secret written out, or a file beside it lies in another folder, or
            cannot be read; the text is for the operator.
    """
    content = read_rules(path)
    document = read(content, str(path), os.environ)
    folder = path.absolute().parent
    if written := secret_lines(document, Config.model_json_schema()):
        raise ValueError(
            f"{path} has secrets written out, in line {_listed(written)}, and a ConfigMap is no"
            " place for them; take them from the environment, ${NAME}"
        )
    documents, modules, keys = _named(document.data)
    texts = {"gateway.yaml": content.decode()}
    for name in documents:
        texts[name] = _beside(folder, name)
    for name in modules:
        source = f"{name.replace('.', '/')}.py"
        if (folder / source).exists():  # otherwise it is installed
            texts[source] = _beside(folder, source)
    for name in keys:
        _beside(folder, name)
    services, apis = set(), set()
    for location in document.texts:
        if location[0] == "services":
            services.add(str(location[1]))
        elif location[0] == "apis" and "conversions" not in location:
            apis.add(str(location[1]))
        elif location[0] not in _APART:
            apis |= _apis(document.data)
    return ExportedFiles(
        texts,
        tuple(keys),
        names(written for _, written in document.texts.values()),
        frozenset(services),
        frozenset(apis),
        ("state",) in document.texts,
        _listed(comment_lines(content.decode())),
    )


def with_token(files: ExportedFiles) -> ExportedFiles:
    """Return the files with a token of the admin port, from the variable ADMIN_TOKEN.

    Raises:
        ValueError: nothing can be added to the rules; the text is for the operator.
    """
    text = files.texts["gateway.yaml"]
    added = text + ("" if text.endswith("\n") else "\n") + _ADDED
    try:
        before = read(text.encode(), "gateway.yaml", os.environ).data
        after = read(added.encode(), "gateway.yaml", {**os.environ, ADMIN_TOKEN: "x" * 16}).data
    except ConfigError:
        before = after = None
    known = {name: value for name, value in _members(after).items() if name != "admin"}
    if "admin" in _members(before) or not known or known != _members(before):
        raise ValueError(
            "others than the pod reach its admin port, and no token can be added to the rules; name"
            " tokens in 'admin'"
        )
    return files._replace(
        texts={**files.texts, "gateway.yaml": added},
        variables={**files.variables, ADMIN_TOKEN: False},
    )


def _listed(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:_LISTED]))


def _beside(folder: Path, name: str) -> str:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"{name} is not in the folder of the rules; put it there to export it")
    try:
        return (folder / name).read_text()
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from None


def _apis(data: Data) -> set[str]:
    return set(_members(_members(data).get("apis")))


def _members(data: Data) -> Mapping[str, Data]:
    return data if isinstance(data, dict) else {}


def _named(data: Data) -> tuple[list[str], list[str], list[str]]:
    """Return the documents, the modules and the key files that rules name, each once."""
    found: tuple[dict[str, None], ...] = ({}, {}, {})

    def walk(part: Data) -> None:
        for key, value in part.items() if isinstance(part, dict) else ():
            if isinstance(value, str):
                if key == "schema" and not value.startswith(("http://", "https://")):
                    found[0][value] = None
                elif key in ("key_file", "token_file"):
                    found[2][value] = None
            elif key == "python" and isinstance(value, dict):
                for name in (value.get("up"), value.get("down")):
                    found[1][str(name).partition(":")[0]] = None
        for inner in _parts(part):
            walk(inner)

    walk(data)
    tls = _members(_members(_members(data).get("admin")).get("tls"))
    found[2].update({str(name): None for name in tls.values()})
    documents, modules, keys = (list(names) for names in found)
    return documents, modules, keys


def _parts(part: Data) -> Iterable[Data]:
    if isinstance(part, dict):
        return part.values()
    return part if isinstance(part, list) else ()
