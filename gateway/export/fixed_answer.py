"""Fixed answers: refusals and OPTIONS that depend on nothing but the endpoint."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from gateway.core.headers import FieldLines, listing
from gateway.core.plan import Options, Plan, plan
from gateway.core.request import RequestHead
from gateway.core.snapshot import Endpoint, Snapshot

OTHER_METHOD = "ANOTHER"
"""Stands for every method that an endpoint does not answer."""


class FixedAnswer(NamedTuple):
    """An answer that the gateway gives whenever a request has a method, at one path.

    Attributes:
        path: The path.
        method: The method; OTHER_METHOD for all that are not allowed; empty for all that are, where
            the version is missing.
        status: The status.
        fields: The header fields.
        body: The body.
    """

    path: str
    method: str
    status: int
    fields: FieldLines
    body: bytes


class _Fields:
    """The header fields of a request that has one, or none."""

    def __init__(self, *lines: tuple[str, str]) -> None:
        self._lines: Mapping[str, Sequence[str]] = {name.lower(): (value,) for name, value in lines}

    def getall(self, key: str, default: tuple[()]) -> Sequence[str]:
        return self._lines.get(key.lower(), default)

    def items(self) -> Iterable[tuple[str, str]]:
        return [(name, value) for name, values in self._lines.items() for value in values]


def fixed_answers(snapshot: Snapshot, endpoint: Endpoint) -> Iterator[FixedAnswer]:
    """Yield the fixed answers of an endpoint, of whose path the version is the only capture.

    Nothing is fixed where a date, a shape of errors, an origin or the choice of the version
    matters.
    """
    selector = endpoint.selector
    if (
        endpoint.methods is None
        or snapshot.cors is not None
        or endpoint.errors
        or endpoint.retired
        or any(route.lifecycle or route.brownout for route in endpoint.routes.values())
        or set(endpoint.template.captures) - {"version"}
    ):
        return
    methods = [OTHER_METHOD] if "OPTIONS" in endpoint.methods else ["OPTIONS", OTHER_METHOD]
    for path, heads in _requests(endpoint):
        for method in methods:
            answers = {_answer(snapshot, head._replace(method=method)) for head in heads}
            if len(answers) == 1 and (answer := answers.pop()) is not None:
                yield FixedAnswer(path, method, *answer)
    if selector is None or len(selector.readers) != 1 or selector.pins:
        return
    (reader,) = selector.readers
    if reader.reads_path or reader.refusal_status == 404:
        return
    head = RequestHead("", endpoint.template.text, None, _Fields())
    missing = {_answer(snapshot, head._replace(method=method)) for method in endpoint.methods}
    if len(missing) == 1 and (answer := missing.pop()) is not None:
        yield FixedAnswer(head.path, "", *answer)


def _requests(endpoint: Endpoint) -> Iterator[tuple[str, list[RequestHead]]]:
    """Yield each path of an endpoint with all requests that could be answered differently there."""
    selector, path = endpoint.selector, endpoint.template.text
    if selector is None or not selector.readers:
        yield path, [RequestHead("", path, None, _Fields())]
        return
    if len(selector.readers) > 1:
        return
    (reader,) = selector.readers
    if reader.reads_path:
        for label in selector.supported:
            there = path.replace("{version}", label)
            yield there, [RequestHead("", there, None, _Fields())]
        return
    heads = [RequestHead("", path, None, _Fields())]
    for version in selector.supported.values():
        match = reader.exact(version)
        if match is None or match.host is not None:
            return
        query = None if match.query is None else urlencode([match.query])
        lines = () if match.header is None else (match.header,)
        heads.append(RequestHead("", path, query, _Fields(*lines)))
    yield path, heads


def _answer(snapshot: Snapshot, head: RequestHead) -> tuple[int, FieldLines, bytes] | None:
    """Return status, fields and body of the gateway's own answer; None if a service answers."""
    outcome = plan(snapshot, head)
    if isinstance(outcome, Plan) or outcome.endpoint is None:
        return None
    vary = outcome.endpoint.vary
    varying = ((b"Vary", listing(vary)),) if vary else ()
    if isinstance(outcome, Options):
        return 204, ((b"Allow", outcome.allow.encode()), *varying, *outcome.fields), b""
    fault = outcome.fault
    fields = (
        (b"Content-Type", b"application/problem+json"),
        (b"Cache-Control", b"no-store"),
        *fault.fields,
        *varying,
        *outcome.fields,
    )
    return fault.status, fields, msgspec.json.encode({**fault.problem(head.path), **fault.own})
