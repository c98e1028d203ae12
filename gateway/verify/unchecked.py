"""The list of what `verify` does not check, and the parts of documents to which it applies."""

from collections.abc import Iterable, Iterator
from enum import Enum

from gateway.conversion.formats.body_format import STREAMS, format_of
from gateway.verify.openapi.openapi import FORM, JSON, Description, Operation


class Unchecked(Enum):
    """A reason why something is not checked. docs/verify.md has these rows, which a test compares.

    Attributes:
        reason: the reason in the report; `{}` is a name.
        what: what is not checked.
        instead: what the reader can do instead.
    """

    reason: str
    what: str
    instead: str

    def __init__(self, reason: str, what: str, instead: str) -> None:
        self.reason, self.what, self.instead = reason, what, instead

    # fmt: off
    NO_ENDPOINT = (
        "no endpoint leads to it", "an operation without an endpoint",
        "Correct `upstream_path` or `servers`, or add an endpoint.",
    )
    NO_METHOD = (
        "its endpoint does not accept {}", "a method that the endpoint refuses",
        "Correct `methods` of the endpoint.",
    )
    TWIN = (
        "requests for it match {}; keep only one of them in the document",
        "the second of two paths that differ only in the names of parameters",
        "Keep one of them in the document.",
    )
    REFUSED = (
        "it is refused with status {}", "an operation with `refuse`",
        "Nothing: no service gets it.",
    )
    OTHER_SERVICE = (
        "the service {} answers it", "an operation with `service`",
        "Describe its conversion with `examples`.",
    )
    NO_BODY = (
        "it has no JSON body and no parameter", "an operation without JSON, form or parameters",
        "Nothing: no change applies to it.",
    )
    NO_JSON = (
        "{} declares no JSON body", "a response without a JSON body",
        "Add its schema to the document, if it is JSON.",
    )
    STREAM = (
        "{}, whose documents are not checked",
        "JSON lines and event streams, also with `itemSchema` (OpenAPI 3.2)",
        "Write `examples` in the conversion; `check` tests them.",
    )
    MEDIA_TYPES = (
        "media types besides the first JSON type and the first form",
        "other media types of a message, such as XML, multipart forms and a second JSON type",
        "See [which bodies are converted](other-bodies.md).",
    )
    ROUND_TRIP = (
        "whether its writes keep unseen data: changes need more than the body",
        "round trips with changes such as `to_header`", "Test the write with `explain --base`.",
    )
    COOKIES = (
        "parameters in cookies", "cookies", "Nothing: they reach the service unchanged.",
    )
    QUERY_STRING = (
        "parameters `in: querystring` (OpenAPI 3.2)", "`in: querystring` (OpenAPI 3.2)",
        "Describe each parameter with `in: query`.",
    )
    METHODS = (
        "the methods QUERY and `additionalOperations` (OpenAPI 3.2)",
        "the method QUERY and `additionalOperations` (OpenAPI 3.2)",
        "Write `examples` in the conversion.",
    )
    CALLBACKS = (
        "callbacks, since the service sends them", "callbacks",
        "Nothing: services send them past the gateway.",
    )
    WEBHOOKS = (
        "webhooks, since the service sends them", "webhooks",
        "Nothing: services send them past the gateway.",
    )
    TIME = (
        "the time limit has passed; increase --seconds", "claims after the time limit",
        "Increase `--seconds`, or narrow the claims with `--operation`.",
    )
    CONTRADICTION = (
        "its schema in {} allows nothing that could be generated ({}); does it contradict itself?",
        "a claim whose schema contradicts itself", "Correct the schema.",
    )
    # fmt: on


_OF_KEYS = {
    "cookie": Unchecked.COOKIES,
    "querystring": Unchecked.QUERY_STRING,
    "additionalOperations": Unchecked.METHODS,
    "callbacks": Unchecked.CALLBACKS,
    "webhooks": Unchecked.WEBHOOKS,
}


def unchecked_parts(descriptions: Iterable[Description]) -> dict[str, dict[str, None]]:
    """Return each reason that applies to documents, with the operations that have such parts."""
    found: dict[Unchecked, dict[str, None]] = {}
    for description in descriptions:
        for reason, operation in _parts(description):
            found.setdefault(reason, {})[operation] = None
    return {one.reason.format(_STREAMS): found[one] for one in Unchecked if one in found}


def stream_of(types: Iterable[str]) -> str | None:
    """Return the first media type of a series of documents."""
    of_stream = (one for one in types if format_of([(b"content-type", one.encode())]) in STREAMS)
    return next(of_stream, None)


def _parts(description: Description) -> Iterator[tuple[Unchecked, str]]:
    for one in description.operations:
        name = f"{one.method} {one.path}"
        yield from (
            (_OF_KEYS[each.place], name) for each in one.parameters if each.place in _OF_KEYS
        )
        for media_type in _unread_types(one):
            yield Unchecked.STREAM if stream_of([media_type]) else Unchecked.MEDIA_TYPES, name
    yield from ((_OF_KEYS[key], name) for key, name in description.unread)


def _unread_types(operation: Operation) -> Iterator[str]:
    """Yield the media types of messages beside those whose schemas are read.

    The claims list responses without JSON, and requests that consist only of streams.
    """
    of_request, kinds = operation.request_types, (JSON, FORM)
    read = [next(filter(kind.match, of_request), None) for kind in kinds]
    if any(read) or not stream_of(of_request):
        yield from (one for one in of_request if one not in read)
    for types in operation.answer_types.values():
        first = next(filter(JSON.match, types), None)
        yield from (one for one in types if first and one != first)


_STREAMS = "JSON lines or event streams"
