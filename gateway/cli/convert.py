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
from gateway.base.errors import FaultError, unconvertible
from gateway.base.mistakes import suggest
from gateway.cli.shared.arguments import add_rules_file, rules_file
from gateway.cli.shared.offline import read_body
from gateway.conversion.chain import Conversion, compose
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.media_filter import request_media
from gateway.conversion.message import Message, QueryWalk
from gateway.conversion.operation_path import (
    FindDocumented,
    OperationPath,
    find_operation_path,
)
from gateway.conversion.parameter_change import QUERY, parse_query
from gateway.conversion.parameter_change import parse_fields as parse_lines
from gateway.http.limits import Limits
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.links import map_offline_fields, offline_link
from gateway.proxy.offline_message import OfflineConversion, OfflineMessage, offline_link_mapper
from gateway.routing.links import LinkMapper
from gateway.routing.plan import documented_operations, find_documented
from gateway.routing.snapshot import Api, Endpoint, Snapshot
from gateway.rules.load import load_file
from gateway.versions.version import Version

HELP = "convert a body, query or header fields from one version to another"
T = TypeVar("T")


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 1 the message does not fit its version, or the file cannot be used."
    )
    add_rules_file(parser)
    parser.add_argument("api", metavar="API", help="the name of the API")
    parser.add_argument(
        "--from", dest="source", required=True, metavar="VERSION", help="the version of the message"
    )
    parser.add_argument(
        "--to", dest="target", required=True, metavar="VERSION", help="the version of the result"
    )
    parser.add_argument(
        "--request",
        metavar="REQUEST",
        help="such as 'PATCH /v1/orders/7?page=2'; or with the path of an endpoint;"
        " needed only if a conversion has operations, methods, paths or additional",
    )
    parser.add_argument(
        "--status", type=int, metavar="N", help="treat the message as a response with this status"
    )
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="LINE", help="such as 'Accept: */*'"
    )
    parser.add_argument(
        "-i", "--include", action="store_true", help="also print the query and the header fields"
    )
    parser.add_argument(
        "--body", type=Path, default=Path("-"), metavar="FILE", help="without it, the input"
    )


def run(arguments: Namespace) -> int:
    """Print the converted message; return 0, or 1 if the message cannot be converted."""
    status = arguments.status
    if status is not None and not 100 <= status <= 599:
        raise ValueError(f"{status} is not a status; write one from 100 to 599")
    snapshot = load_file(rules_file(arguments), os.environ)
    line = arguments.request or ("POST /" if arguments.status is None else "GET /")
    head = parse_request(line, (), snapshot)
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
            f"{api.name} has conversions for some paths only; add a request, such as"
            " --request 'GET /path'"
        )
    fields = parse_fields(arguments.header, snapshot)
    media = request_media(fields)
    conversion, reverse = conversion.of_request(media), reverse.of_request(media)
    if status is not None:
        conversion = conversion.of_response(field_lines(fields))
    asked, answered = (conversion, reverse) if status is None else (reverse, conversion)
    find = None if endpoint is None else _documented(api, endpoint, asked, captures)
    if find is not None and not conversion.has_operations:
        found = documented_operations(find, api.documents, head.method)
        asked, answered = asked.filtered(found), answered.filtered(found)
        conversion = asked if status is None else answered
    body = _read_body(arguments.body, snapshot.limits)
    try:
        query = parse_query(head.query)
        before = Message(
            head.method,
            head.path,
            head.path if endpoint is None else endpoint.template.text,
            captures,
            status=status,
            headers=parse_lines(field_lines(fields)),
            query=query,
        )
        query_steps, path = asked.query_steps(head.method), head.path
        if endpoint is not None and conversion.has_operations:
            operation_path = _operation_path(asked, answered, before, head.query, endpoint, find)
            conversion = operation_path.request if status is None else operation_path.response
            answered, query_steps, path = (
                operation_path.response,
                operation_path.query_steps,
                operation_path.path,
            )
            if status is None:
                head = head._replace(method=operation_path.method, path=path)
        message = replace(
            before.copied(),
            target=path,
            way=QueryWalk(query, query_steps, QUERY.of(before)),
            back=answered.query_steps("GET"),
        )
        client, service = (source, target) if status is None else (target, source)
        mapper = _mapper(snapshot, endpoint, (client, service), before, path)
        message = replace(message, link=offline_link(mapper, status))
        room = ConversionShare(snapshot.limits.convert, snapshot.limits.elements)
        types = (api.endpoints[0] if endpoint is None else endpoint).media_types
        made = OfflineConversion(conversion, head.method, message, types, room).convert(body)
    except (ConversionError, FaultError) as error:
        fault = error.fault if isinstance(error, FaultError) else unconvertible(error)
        print(f"refused with {fault.status} {fault.code}: {fault.detail}", file=sys.stderr)
        return 1
    made = made._replace(fields=map_offline_fields(mapper, made.fields, status, message.link))
    if made.kept:
        print(f"the body stays unchanged: {made.kept}", file=sys.stderr)
    _write(made, f"{head.method} {head.path}" if status is None else None, arguments)
    return 0


def _read_body(file: Path, limits: Limits) -> bytes:
    body = read_body(file, limits)
    if len(body) > limits.convert:
        raise ValueError(
            f"the body is larger than {limits.convert} bytes, the bound limits.convert"
        )
    return body


def _write(made: OfflineMessage, line: str | None, arguments: Namespace) -> None:
    """`line` is the method and the path of a request, or None for a response."""
    output = sys.stdout.buffer
    if arguments.include:
        if line is not None:
            output.write(f"{line}{'' if made.query is None else f'?{made.query}'}\n".encode())
        output.writelines(name + b": " + value + b"\n" for name, value in made.fields)
        output.write(b"\n")
    if made.body:
        output.write(made.body + b"\n")


def _entry(name: str, known: Mapping[str, T], what: str) -> T:
    if name not in known:
        raise ValueError(f"no {what} is called '{name}'; {suggest(name, known)}")
    return known[name]


def _conversion(api: Api, source: Version, target: Version) -> Conversion:
    if source == target:
        raise ValueError(f"{source} and {target} are the same version; name two different versions")
    try:
        return compose(tuple(api.versions.values()), api.links, source, target)
    except LookupError:
        raise ValueError(
            f"{api.name}: no conversions lead from {source} to {target}; declare them"
        ) from None


def _endpoint(snapshot: Snapshot, api: Api, path: str) -> tuple[Endpoint, Mapping[str, str]]:
    """Return the endpoint for a path, and the values of its path parameters.

    The path is the path of a request, or a template as written in the configuration.
    """
    for endpoint in api.endpoints:
        if endpoint.template.text == path:
            return endpoint, {name: f"{{{name}}}" for name in endpoint.template.captures}
    found = snapshot.router.find(path)
    if found is None or found[0].api != api.name:
        known = ", ".join(endpoint.template.text for endpoint in api.endpoints)
        raise ValueError(f"no endpoint of {api.name} has the path {path}; known: {known}")
    return found


def _documented(
    api: Api, endpoint: Endpoint, asked: Conversion, captures: Mapping[str, str]
) -> FindDocumented | None:
    """Return what finds operations in documents; None if no conversion has `additional`."""
    route = endpoint.routes.get(asked.version_steps[0].source)
    if route is None or not api.documents:
        return None
    return partial(
        find_documented, route.upstream_path or endpoint.template, captures, api.documents
    )


def _mapper(
    snapshot: Snapshot,
    endpoint: Endpoint | None,
    versions: tuple[Version, Version],
    request: Message,
    target: str,
) -> LinkMapper | None:
    client, service = versions
    own = None if endpoint is None else endpoint.routes.get(client)
    if endpoint is None or own is None:
        return None
    for route in (own, *(one.route for one in (own.cutover, own.shadow) if one is not None)):
        if route.service_version == service:
            captures = {**request.captures, "version": str(client)}
            path = endpoint.template.fill(captures)
            asked = None if target == request.path else target
            return offline_link_mapper(snapshot, endpoint, route, captures, path, target=asked)
    return None


def _operation_path(
    asked: Conversion,
    answered: Conversion,
    message: Message,
    query: str | None,
    endpoint: Endpoint,
    find: FindDocumented | None,
) -> OperationPath:
    """Return the operation path; raises ConversionError, or ValueError without the operation."""
    version = asked.version_steps[0].source
    template = endpoint.routes[version].upstream_path if version in endpoint.routes else None

    def path(version: Version) -> str:
        filled = {**message.captures, "version": str(version)}
        return (template or endpoint.template).fill(filled)

    operation_path = find_operation_path(
        asked, answered, message.method, path, query, message, find=find
    )
    if operation_path.substitute is not None:
        raise ValueError(
            f"version {asked.version_steps[-1].target} lacks this operation; no conversion applies"
        )
    return operation_path
