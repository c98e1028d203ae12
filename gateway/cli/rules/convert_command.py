"""The command `convert`: converts one message from one version of an API to another."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from gateway.admin.explanation import field_lines, parse_fields, parse_request
from gateway.cli.rules.command_files import read_body
from gateway.config.load import load_file
from gateway.config.text.mistakes import suggest
from gateway.core.conversion.chain import BodyConversion, Conversion, compose
from gateway.core.conversion.conversion_error import ConversionError
from gateway.core.conversion.message.message import Message
from gateway.core.conversion.message.query_walk import QueryWalk
from gateway.core.conversion.parameter_change import QUERY, parse_query, write_fields, write_query
from gateway.core.conversion.parameter_change import parse_fields as parse_lines
from gateway.core.conversion.passage import Passage, find_passage
from gateway.core.headers import HeaderFields
from gateway.core.snapshot import Api, Endpoint, Snapshot
from gateway.core.versions.version import Version
from gateway.proxy.body import body_conversion, json_body
from gateway.proxy.body.body_format import BodyFormat, format_of
from gateway.proxy.body.conversion_room import ConversionRoom
from gateway.proxy.body.formats.form_body import retyped
from gateway.proxy.body.slow_thread import run_now
from gateway.settings import Settings

T = TypeVar("T")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the API, its versions, the message and the file."""
    parser.add_argument("api", metavar="API")
    parser.add_argument("--from", dest="source", required=True, metavar="VERSION")
    parser.add_argument("--to", dest="target", required=True, metavar="VERSION")
    parser.add_argument(
        "--request",
        metavar="REQUEST",
        help="such as 'PATCH /v1/orders/7?page=2'; a path may be that of an endpoint as the rules"
        " write it, and is needed only where conversions are for some paths",
    )
    parser.add_argument(
        "--status", type=int, metavar="N", help="the message is an answer with this status"
    )
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="LINE", help="such as 'Accept: */*'"
    )
    parser.add_argument(
        "-i", "--include", action="store_true", help="print the query and the header fields as well"
    )
    parser.add_argument(
        "--body", type=Path, default=Path("-"), metavar="FILE", help="without it, the input"
    )
    parser.add_argument("--file", type=Path, metavar="FILE", help="without it, GATEWAY_CONFIG")


def run(arguments: Namespace) -> int:
    """Print the converted message; return 0, or 1 if it does not fit the version that it has."""
    path = arguments.file or Settings.from_environment(os.environ).config
    line = arguments.request or ("POST /" if arguments.status is None else "GET /")
    head = parse_request(line, ())
    status = arguments.status
    if status is not None and not 100 <= status <= 599:
        raise ValueError(f"{status} is not a status; write one from 100 to 599")
    snapshot = load_file(path, os.environ)
    api = _entry(arguments.api, {api.name: api for api in snapshot.apis}, "API")
    source, target = (
        _entry(label, api.versions, f"version of {api.name}")
        for label in (arguments.source, arguments.target)
    )
    conversion, reverse = _conversion(api, source, target), _conversion(api, target, source)
    endpoint: Endpoint | None = None
    captures: Mapping[str, str] = {}
    if arguments.request is not None:
        endpoint, captures = _endpoint(snapshot, api, head.path)
        conversion, reverse = (each.at(endpoint.template.text) for each in (conversion, reverse))
    elif conversion.has_operations or any(link.paths for link in conversion.links):
        raise ValueError(
            f"{api.name} has conversions that are for some paths; name a request, such as"
            " --request 'GET /path'"
        )
    asked, answered = (conversion, reverse) if status is None else (reverse, conversion)
    body = read_body(arguments.body)
    if len(body) > snapshot.limits.convert:
        raise ValueError(
            f"the body is larger than {snapshot.limits.convert} bytes, the bound limits.convert"
        )
    try:
        query = parse_query(head.query)
        before = Message(
            head.method,
            head.path,
            head.path if endpoint is None else endpoint.template.text,
            captures,
            status=status,
            headers=parse_lines(field_lines(parse_fields(arguments.header))),
            query=query,
        )
        hops, path = asked.query_hops(head.method), head.path
        if endpoint is not None and conversion.has_operations:
            passage = _passage(asked, answered, before, head.query, endpoint)
            conversion = passage.request if status is None else passage.response
            answered, hops, path = passage.response, passage.query_hops, passage.path
            if status is None:
                head = head._replace(method=passage.method, path=path)
        message = replace(
            before.copied(),
            target=path,
            way=QueryWalk(query, hops, QUERY.of(before)),
            back=answered.query_hops("GET"),
        )
        sent, fields, converted = _converted(conversion, head.method, message, body)
    except ConversionError as error:
        cause = f" ({error.cause})" if error.cause else ""
        print(f"it does not fit version {source}: {error}{cause}", file=sys.stderr)
        return 1
    output = sys.stdout.buffer
    if arguments.include:
        if status is None:
            target_text = head.path if sent is None else f"{head.path}?{sent}"
            output.write(f"{head.method} {target_text}\n".encode())
        output.writelines(name + b": " + value + b"\n" for name, value in fields)
        output.write(b"\n")
    if converted:
        output.write(converted + b"\n")
    return 0


def _entry(name: str, known: Mapping[str, T], what: str) -> T:
    if name not in known:
        raise ValueError(f"no {what} is called '{name}'; {suggest(name, known)}")
    return known[name]


def _conversion(api: Api, source: Version, target: Version) -> Conversion:
    if source == target:
        raise ValueError(f"{source} and {target} are one version; name two")
    try:
        return compose(tuple(api.versions.values()), api.links, source, target)
    except LookupError:
        raise ValueError(
            f"{api.name}: no conversions lead from {source} to {target}; declare them"
        ) from None


def _endpoint(snapshot: Snapshot, api: Api, path: str) -> tuple[Endpoint, Mapping[str, str]]:
    """Return the endpoint of a path, of a request or as the rules write it, and its captures."""
    for endpoint in api.endpoints:
        if endpoint.template.text == path:
            return endpoint, {name: f"{{{name}}}" for name in endpoint.template.captures}
    found = snapshot.router.find(path)
    if found is None or found[0].api != api.name:
        known = ", ".join(endpoint.template.text for endpoint in api.endpoints)
        raise ValueError(f"no endpoint of {api.name} has the path {path}; known: {known}")
    return found


def _passage(
    asked: Conversion,
    answered: Conversion,
    message: Message,
    query: str | None,
    endpoint: Endpoint,
) -> Passage:
    """Return the passage of a request; raises ConversionError, or ValueError if it has none."""
    version = asked.hops[0].source
    template = endpoint.routes[version].upstream_path if version in endpoint.routes else None

    def path(version: Version) -> str:
        filled = {**message.captures, "version": str(version)}
        return (template or endpoint.template).fill(filled)

    passage = find_passage(asked, answered, message.method, path, query, message)
    if passage.substitute is not None:
        raise ValueError(
            f"version {asked.hops[-1].target} lacks this operation, so nothing converts it"
        )
    return passage


def _stays_empty(conversion: BodyConversion, message: Message) -> bool:
    """Convert a message without a body; return whether no value comes into one."""
    before = message.copied()
    carrying = conversion.carrying
    if run_now(partial(json_body.convert, b"{}", carrying, message), carrying.timeout) == b"{}":
        return True
    message.restore(before)
    return False


def _converted(
    conversion: Conversion, method: str, message: Message, body: bytes
) -> tuple[str | None, HeaderFields, bytes]:
    """Return the query, the header fields and the body; raises ConversionError, or ValueError."""
    status, given = message.status, write_fields(message.headers)
    made = conversion.made(method) if status is None and not body else None
    if made is not None:
        body, given = b"{}", [(b"Content-Type", b"application/json"), *given]
    one = made
    if made is None and status is None:
        one = conversion.for_request(method)
    elif status is not None:
        one = conversion.for_response(message.method, status)
    together = one is not None and one.needs_message
    converted = body.removesuffix(b"\n")
    if one is not None and not body and together and _stays_empty(one, message):
        return write_query(message.query), write_fields(message.headers), b""
    if one is not None and (body or together):
        typed = any(name.lower() == b"content-type" for name, _ in given)
        body_format = format_of(given) if typed else BodyFormat.JSON
        room = ConversionRoom(max(len(body), 2), max(len(body), 2))
        convert = body_conversion.converter(body_format, room)
        if convert is None:
            raise ValueError(
                "the Content-Type is not one of JSON, forms or streams of JSON documents"
            )
        if body_format is BodyFormat.FORM:
            body = body.removesuffix(b"\n")  # which a shell adds
        call = partial(convert, body or b"{}", one, message, None)
        converted = run_now(call, one.timeout)
    if status is None and conversion.drops_body and converted == b"{}":
        converted = b""
    if together:
        fields = write_fields(message.headers)
    else:
        fields = conversion.fields(message.method, status, given, message)
    if one is not None and format_of(given) is BodyFormat.FORM:
        fields = retyped(fields, one)
    if together:
        return write_query(message.query), fields, converted
    query = write_query(message.way.service) if status is None else None
    return query, fields, converted
