"""The generated reference pages in docs/."""

# ruff: noqa: E501, SLF001  table rows are long; argparse lists arguments only in private attributes

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from pydantic import BaseModel

import gateway.process.settings
import users_service.settings
from gateway.base.errors import FaultCode
from gateway.cli import COMMANDS, command_named
from gateway.cli.shared.arguments import CommandParser
from gateway.conversion.changes.registry import CHANGES, PARAMETER_CHANGES, ChangeConfig
from gateway.observe.metric_table import METRICS, MetricRow
from gateway.rules.editor_schema import descriptions, json_schema
from gateway.versions.mechanisms import MECHANISMS
from stack import bounds
from stack.schema_keys import Key, SchemaKeys

SECTIONS = (
    "services.NAME",
    "apis.NAME",
    "apis.NAME.endpoints[]",
    "apis.NAME.conversions[]",
    "apis.NAME.conversions[].operations[]",
    "apis.NAME.cors",
    "apis.NAME.versions.VERSION",
    *(
        f"apis.NAME.versions.VERSION.{name}"
        for name in ("lifecycle", "brownout", "shadow", "cutover", "errors")
    ),
    "clients",
    "admin",
    "notify",
    "cors",
    "rate_limits[]",
    "limits",
)
"""The parts of gateway.yaml that have separate tables. Other keys are in their parent's table."""

PAGES_OF_KEYS = {
    "services.NAME": "A service gets the [selected version](http.md#the-version-in-requests-to-services).",
    "apis.NAME.endpoints[]": "[Select a version](selection.md) explains paths and mechanisms.",
    "apis.NAME.conversions[]": "[Convert](convert.md) begins with an example; [Changes](changes.md)"
    " lists the changes.",
    "apis.NAME.conversions[].operations[]": "[Operations](operations.md) has examples.",
    "apis.NAME.cors": "[HTTP through the gateway](http.md#cors) has an example.",
    "apis.NAME.versions.VERSION.errors": "[Errors in another shape](error-shapes.md) has an example.",
    "apis.NAME.versions.VERSION.lifecycle": "[End a version](lifecycle.md) has examples.",
    "apis.NAME.versions.VERSION.brownout": "[End a version](lifecycle.md#brown-out) has examples.",
    "apis.NAME.versions.VERSION.shadow": "[Shadow](shadow-and-cutover.md#shadow) has examples.",
    "apis.NAME.versions.VERSION.cutover": "[Cutover](shadow-and-cutover.md#shift) has examples,"
    " [Gates](gates.md) explains the compared values.",
    "clients": "[The example](example.md#clients-defaults-and-pins) has an example. An entry of `by` has"
    " exactly one of `header`, `api_key`, `jwt` and `address`.",
    "admin": "[The admin port](admin-port.md#who-may-do-what) has examples.",
    "notify": "[Notifications](notifications.md) has an example.",
    "cors": "[HTTP through the gateway](http.md#cors) has an example.",
    "rate_limits[]": "[Rate limits](rate-limits.md) has examples.",
    "limits": "[Bounds](bounds.md) lists the result at each limit.",
}
"""The sentence under a table's heading with a link to the page that has examples."""


@cache
def _schema() -> SchemaKeys:
    return SchemaKeys(json_schema())


def schema() -> str:
    return json.dumps(_schema().schema, indent=2) + "\n"


def keys_page() -> str:
    tables: dict[str, list[Key]] = {"": [], **{section: [] for section in SECTIONS}}
    for key in _schema().keys():  # noqa: SIM118  not a dict
        around = (one for one in SECTIONS if key.path.startswith(f"{one}."))
        section = max(around, key=len, default="")
        tables[section].append(key)
    parts = [
        _heading(
            "Keys of gateway.yaml",
            "the models of `gateway/`",
            "If the default is empty, the key is absent or empty by default, and the text describes"
            " the effect. `NAME` and `VERSION` stand for your own names, `[]` for the entries of a"
            " list. [Write gateway.yaml](configuration.md) explains variables.",
        ),
        "\n".join(
            f"- [{section or 'the top'}](#{_anchor(section or 'The top')})"
            for section in (*tables, MECHANISM)
        ),
    ]
    for section, keys in tables.items():
        prefix = f"{section}." if section else ""
        parts += [f"## {f'`{section}`' if section else 'The top'}"]
        parts += [PAGES_OF_KEYS[section]] if section in PAGES_OF_KEYS else []
        parts += [_table_of_keys(keys, prefix)]
    parts += [f"## `{MECHANISM}`", _MECHANISMS]
    for name, model in MECHANISMS.items():
        parts += [f"### `in: {name}`", _sentence(model), _table_of_model(model.__name__, {"in"})]
    return "\n\n".join(parts) + "\n"


MECHANISM = "apis.NAME.endpoints[].version"
_MECHANISMS = "The place of the version in a request. [Select a version](selection.md) has an example of each."


def changes_page() -> str:
    parts = [
        _heading(
            "Changes between versions",
            "`gateway/conversion/changes/`",
            "A change is written from the newer version to the older one and runs in both directions."
            " [Change examples](change-examples.md) shows each change in the bodies of both versions."
            " [Convert](convert.md) explains the names of fields and the order of changes.",
        ),
        f"`changes` and `groups` take {_listed(CHANGES)}.",
        f"`query` and `headers` take {_listed(PARAMETER_CHANGES)}.",
        "## Options of an entry",
        "An entry has the name of one change. These keys may stand beside the name:",
        _table(_rows_of_options()),
    ]
    for name, model in sorted({**PARAMETER_CHANGES, **CHANGES}.items()):
        of_body, of_parameter = CHANGES.get(name), PARAMETER_CHANGES.get(name)
        parts += [f"## `{name}`", _sentence(model), _table_of_model(model.__name__)]
        if of_body and of_parameter:
            own = _rows_of_model(of_parameter.__name__)
            if own != _rows_of_model(of_body.__name__):
                parts += ["In `query` and `headers`:", _table(own)]
        elif not of_body:
            parts += ["Only in `query` and `headers`."]
    return "\n\n".join(parts) + "\n"


def _rows_of_options() -> list[tuple[str, str, str]]:
    rows = _rows_of_model(ChangeConfig.__name__)
    return [row for row in rows if row[0].partition(".")[0] not in CHANGES]


def bounds_page() -> str:
    return f"""\
{
        _heading(
            "Bounds",
            "`stack/bounds.py`",
            "Which limits apply to the memory, time and connections that a client can occupy?"
            " [Bounds of services and of the background](bounds-services.md) has the other tables.",
        )
    }

## How to read the tables

Anyone who can reach the port, and any misbehaving service, can take only a bounded amount of
each resource. If the second column names a key, you can configure the bound. The last column
names the metric or the log event that shows the bound at work, or the reason why none is
needed.

"Waits in turns" means: networks of clients take turns. A network is an IPv4 address or an IPv6
/64. A "turn" is one iteration of the event loop.

{_bounds(bounds.CLIENTS)}
"""


def services_bounds_page() -> str:
    return f"""\
{
        _heading(
            "Bounds of services and of the background",
            "`stack/bounds.py`",
            "What limits the memory, time and connections that services and background work can take"
            " from the gateway? [Bounds](bounds.md) explains the columns and has the bounds of"
            " clients.",
        )
    }

{_bounds(bounds.OTHERS)}
"""


def _bounds(sections: Mapping[str, Sequence[bounds.Bound]]) -> str:
    head = "| Resource | Bound | Default | At the bound | Metric |\n| --- | --- | --- | --- | --- |"
    return "\n\n".join(
        "\n".join([f"## {title}\n\n{head}", *(f"| {' | '.join(row.row())} |" for row in rows)])
        for title, rows in sections.items()
    )


def errors_page() -> str:
    rows = "\n".join(
        f"| {code.usual_status} | `{code}` | {code.problem_title} | {code.blame.value} | {code.when} |"
        for code in sorted(FaultCode, key=lambda one: (one.usual_status, one))
    )
    return f"""\
{
        _heading(
            "Errors",
            "`gateway/base/errors.py`",
            "Every refusal is a problem detail (RFC 9457) with a stable `code`. `Blame` is the party that"
            " caused it, as metrics and gates count it.",
        )
    }

| Status | `code` | Title | Blame | When |
| --- | --- | --- | --- | --- |
{rows}

The status of the four `version_…` errors with status 400 depends on the place of the version: 400 for
a query parameter or a header field, 404 for the path or the host name, 406 for `Accept` and 415 for
`Content-Type`. [Errors in another shape](error-shapes.md) explains errors, codes and statuses of a
version, and lists the errors of `users_service`.
"""


_USERS = {
    "host": "The address or host name on which `python -m users_service` listens.",
    "port": "The port on which it listens.",
    "grace": "The maximum time that a shutdown waits for responses, in seconds.",
    "max_body": "The largest body of a request, in bytes.",
    "body_timeout": "The time limit for receiving a body, in seconds.",
    "max_depth": "The maximum nesting depth of arrays and objects in a body.",
    "timezone": "The time zone in which a birth date must be in the past, such as Europe/Berlin.",
    "database_url": "The database of the users: `sqlite+aiosqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/DATABASE`.",
    "database_timeout": "The maximum time to wait for a database connection, and again for a lock, in seconds.",
}
SETTINGS: Mapping[str, type[BaseModel]] = {
    "GATEWAY": gateway.process.settings.Settings,
    "USERS": users_service.settings.Settings,
}
"""The models of the settings, by the prefix of their environment variables."""
_PERSON = (
    (
        "BACKEND_V1_HOST",
        "The address or host name on which `python -m backend_v1` listens.",
        "127.0.0.1",
    ),
    ("BACKEND_V1_PORT", "The port on which it listens.", "8001"),
    ("BACKEND_V1_GRACE", "The maximum time that a shutdown waits for responses, in seconds.", "10"),
    (
        "BACKEND_V2_HOST",
        "The address or host name on which `python -m backend_v2` listens.",
        "127.0.0.1",
    ),
    ("BACKEND_V2_PORT", "The port on which it listens.", "8002"),
    ("BACKEND_V2_GRACE", "The maximum time that a shutdown waits for responses, in seconds.", "10"),
    ("PERSON_FIRST_NAME", "The first name of the person that both backends have.", "Bob"),
    ("PERSON_LAST_NAME", "The last name of that person.", "Charlie"),
)


def environment_page() -> str:
    rows = [*_variables("GATEWAY"), *_PERSON, *_variables("USERS")]
    lines = "\n".join(
        f"| `{name}` | {text} | {f'`{value}`' if value else ''} |" for name, text, value in rows
    )
    return f"""\
{
        _heading(
            "Environment",
            "`gateway/process/settings.py` and `users_service/settings.py`",
            "Environment variables hold the settings that differ between machines. [Processes](processes.md)"
            " describes the programs. The example `gateway.yaml` uses other variables, such as"
            " `GATEWAY_STATE`: see [Variables](configuration.md#variables). For those of OpenTelemetry, see"
            " [Traces](observability.md#traces).",
        )
    }

| Variable | Meaning | Default |
| --- | --- | --- |
{lines}
"""


def _variables(program: str) -> Iterator[tuple[str, str, str]]:
    texts = _USERS if program == "USERS" else dict(descriptions(SETTINGS[program]))
    for name, field in SETTINGS[program].model_fields.items():
        value = "" if field.default_factory or field.default is None else f"{field.default}"
        yield f"{program}_{name.upper()}", " ".join(texts[name].split()), value.removesuffix(".0")


def commands_page() -> str:
    parts = [
        _heading(
            "Commands",
            "the parsers of `gateway/cli/`",
            "An installed gateway is `version-gateway COMMAND`; in a clone it is"
            " `.venv/bin/python -m gateway COMMAND`. [Use the commands](command-line.md) explains"
            " how commands find the configuration and the admin port.",
        ),
        "| Command | Purpose |\n| --- | --- |\n"
        + "\n".join(f"| [`{name}`](#{name}) | {command_named(name).HELP} |" for name in COMMANDS),
    ]
    for name in COMMANDS:
        command = command_named(name)
        parser = CommandParser(prog=f"version-gateway {name}")
        command.add_arguments(parser)
        parts += [
            f"## {name}",
            f"{command.HELP[0].upper()}{command.HELP[1:]}.",
            *_arguments(parser),
        ]
    return "\n\n".join(parts) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = argparse.HelpFormatter(parser.prog, width=100)
    actions = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not actions:
        shown.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
        yield f"```text\n{shown.format_help().removeprefix('usage: ').strip()}\n```"
    rows = [
        f"| {', '.join(f'`{option}`' for option in one.option_strings) or f'`{one.metavar or one.dest}`'}"
        f" | {_escaped(_help(one, parser))} |"
        for one in parser._actions
        if one not in actions and one.dest != "help"
    ]
    if rows:
        yield "| Argument | Meaning |\n| --- | --- |\n" + "\n".join(rows)
    if parser.epilog:
        yield parser.epilog
    for action in actions:
        about = {one.dest: one.help or "" for one in action._choices_actions}
        for name, inner in action.choices.items():
            text = about[name]
            yield f"### {inner.prog.removeprefix('version-gateway ')}"
            yield f"{text[:1].upper()}{text[1:]}."
            yield from _arguments(inner)


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    if action.choices and not text:
        text = ", ".join(map(str, action.choices))
    return text


def metrics_page() -> str:
    heading = _heading(
        "Metrics",
        "`gateway/observe/metric_table.py`",
        "Values in the third column are those of the last label."
        " [Observability](observability.md#metrics) explains the labels of `http_*`. Kept metrics"
        " continue after a restart if `state` is set. Other counters and histograms begin at zero.",
    )
    rows = "\n".join(map(_metric, METRICS))
    return f"{heading}\n\n| Metric | Type | Labels | Kept | Meaning |\n| --- | --- | --- | --- | --- |\n{rows}\n"


def _metric(row: MetricRow) -> str:
    labels = ", ".join(f"`{label}`" for label in row.labels)
    if row.values:
        labels += ": " + ", ".join(f"`{value}`" for value in row.values)
    kept = "" if row.type == "gauge" else "yes" if row.lasting else "no"
    return f"| `{row.name}` | {row.type} | {labels} | {kept} | {row.help} |"


def _heading(title: str, source: str, about: str) -> str:
    return f"Generated from {source} by `make generate`; do not edit this page.\n\n# {title}\n\n{about}"


def _sentence(model: type[BaseModel]) -> str:
    return " ".join((_schema().models[model.__name__].get("description") or "").split())


def _table_of_model(name: str, without: Iterable[str] = ()) -> str:
    return _table([row for row in _rows_of_model(name) if row[0] not in without])


def _rows_of_model(name: str) -> list[tuple[str, str, str]]:
    return [_row(key, "") for key in _schema().keys(_schema().models[name])]


def _table_of_keys(keys: Iterable[Key], prefix: str) -> str:
    return _table([_row(key, prefix) for key in keys])


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    lines = "\n".join(f"| `{name}` | {text} | {default} |" for name, text, default in rows)
    return f"| Key | Meaning | Default |\n| --- | --- | --- |\n{lines}"


def _row(key: Key, prefix: str) -> tuple[str, str, str]:
    """Return the cells for a key.

    If the default column has a value, the sentence about the default is removed from the text.
    """
    default = f"`{key.default}`" if key.default.strip() else "required" if key.required else ""
    text = re.sub(r" The default is .+\.$", "", key.description) if default else key.description
    return key.path.removeprefix(prefix), _escaped(text), default


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
