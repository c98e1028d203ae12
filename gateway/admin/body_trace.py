"""Explains the conversion of a body: the body after each change, and the final result."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from gateway.base.errors import Fault, FaultError
from gateway.base.headers import FieldLines
from gateway.base.mistakes import Location, place
from gateway.base.request import RequestHead
from gateway.conversion.additional import MessageFilter
from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.declared.conversion import Part
from gateway.conversion.document import PLAIN, Document
from gateway.conversion.formats import json_body
from gateway.conversion.formats.body_format import MAYBE_JSON, BodyFormat, described
from gateway.conversion.formats.form_body import (
    FORM,
    is_form,
    json_from,
    read_form,
    typed,
    write_form,
)
from gateway.conversion.formats.large_json import encode
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import write_fields
from gateway.conversion.patches import json_patch
from gateway.conversion.steps import BodyStep
from gateway.conversion.version_step import Direction, VersionLink, carrying, message_steps
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.links import offline_link
from gateway.proxy.merged_writes import (
    conversions_of,
    form_of_write,
    merge_bodies,
    merge_fault,
)
from gateway.proxy.message_conversion import planned_message
from gateway.proxy.offline_message import OfflineConversion, OfflineMessage, offline_link_mapper
from gateway.proxy.timed_conversion import run_now
from gateway.routing.plan import MergedWrite, Plan
from gateway.routing.snapshot import Snapshot
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class ExplainedBody:
    """A body to explain.

    Attributes:
        parts: The declared conversions of each API.
        fields: The header fields of a request; empty for a response.
        base: The service's document for a write that is merged; None if it is unknown.
    """

    content: bytes
    status: int | None
    parts: Mapping[str, Sequence[Part]]
    fields: FieldLines
    base: bytes | None = None


def explain_body(
    chosen: Plan, snapshot: Snapshot, head: RequestHead, body: ExplainedBody
) -> Iterator[tuple[str, str]]:
    """Yield facts about the body: the original, the body after each change, and the result."""
    status, method = body.status, head.method
    converting = chosen.request if status is None else chosen.response
    of = "the request" if status is None else f"an answer {status}"
    yield "body", f"{_on_one_line(body.content) if body.content else 'none'} of {of}"
    if converting is None:
        yield "becomes", "unchanged, since no conversion applies"
        return
    found = snapshot.router.find(head.path)
    captures = {} if found is None else found[1]
    mapper = offline_link_mapper(
        snapshot,
        chosen.endpoint,
        chosen.route,
        captures,
        head.path,
        chosen_by=chosen.chosen_by,
        target=chosen.target.partition("?")[0],
        authority=head.authority,
    )
    fields, link = [*body.fields], offline_link(mapper, status)
    message = planned_message(chosen, method, head.path, head.query, captures, fields, status, link)
    asked, types = chosen.method(method), chosen.endpoint.media_types
    if status is None and isinstance(chosen.shadow, MergedWrite):
        of_read = replace(message, status=200, link=offline_link(mapper, 200))
        yield from _merged(chosen, chosen.shadow, method, body, (of_read, message))
        return
    room = ConversionShare(snapshot.limits.convert, snapshot.limits.elements)
    lone = OfflineConversion(converting, asked, message, types, room)
    made: OfflineMessage | Fault
    try:
        made = lone.convert(body.content)
    except FaultError as error:
        made = error.fault
    passes = isinstance(made, OfflineMessage) and (made.kept or not made.body)
    whole = True
    if lone.used is not None and not passes:
        conversion, message = lone.used
        parts = body.parts[chosen.endpoint.api]
        with suppress(ConversionError):  # in a header field or the query; the final result names it
            for one in _trace(body.content, conversion, parts, message):
                yield "change", f"{one.name}, to version {one.target}"
                whole = one.body is None
                if one.body is not None:
                    yield "becomes", _on_one_line(one.body) if one.changed else "unchanged"
                    yield from (("beside", text) for text in one.beside)
    if isinstance(made, Fault):
        yield "answer", f"{made.status} {made.code}: {made.detail}"
    elif made.kept:
        yield "becomes", f"unchanged, since {made.kept}"
    elif not made.body:
        yield "becomes", "none"
    elif lone.used is None:
        yield "becomes", "unchanged, since no conversion applies"
    elif whole:
        yield "becomes", _on_one_line(made.body)


def _merged(
    chosen: Plan,
    write: MergedWrite,
    method: str,
    body: ExplainedBody,
    messages: tuple[Message, Message],
) -> Iterator[tuple[str, str]]:
    """Yield the documents of a merged write; see `conversion.merging`."""
    if body.base is None:
        yield "becomes", "merged into the document of the service; add it by --base FILE"
        return
    yield "base", f"{_on_one_line(body.base)} of the service"
    fields, asked = write_fields(messages[1].headers), chosen.method(method)
    form = form_of_write(method, described(fields, chosen.endpoint.media_types)[0], fields)
    try:
        ways = conversions_of(chosen, write, method, [])
        if form is None:
            raise ConversionError("only JSON, JSON Merge Patch and JSON Patch are merged")
        given = body.base, body.content, form, messages
        made = merge_bodies(chosen, write, asked, ways, *given)
        sent = made.body(form, is_patch=asked == "PATCH")
    except (ConversionError, FaultError) as error:
        fault = (error if isinstance(error, FaultError) else merge_fault(error)).fault
        yield "answer", f"{fault.status} {fault.code}: {fault.detail}"
        return
    yield "read", f"{_written(made.read)} by the client of version {chosen.version}"
    yield "written", f"{_written(made.written)} by the client of version {chosen.version}"
    yield from (("differs", _written(one)) for one in json_patch(made.base, made.merged))
    yield "merged", f"{_written(made.merged)} for the service"
    if sent is not made.merged:
        yield "becomes", _written(sent)


def _written(document: Document) -> str:
    return _on_one_line(encode(document))


def _on_one_line(body: bytes) -> str:
    try:
        return msgspec.json.format(body, indent=-1).decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ascii(body)[1:]


@dataclass(frozen=True, slots=True)
class _TracedChange:
    """`name` is the place of the change; `beside` has the fields and parameters that it has set."""

    name: str
    target: Version
    body: bytes | None
    changed: bool = True
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _State:
    """A body between two changes; for a form, `fields` contains its decoded fields."""

    body: bytes
    fields: Document = None


def _trace(
    body: bytes,
    conversion: BodyConversion,
    parts: Sequence[Part],
    message: Message,
) -> Iterator[_TracedChange]:
    """Yield the body after each change, up to the first that fails; raises ConversionError.

    Intermediate bodies are shown only for valid JSON and valid forms.
    """
    upwards = conversion.direction is Direction.UP
    state = _begun(body, message)
    if state is None:
        return
    begin = None if state.fields is None else json_from(conversion)
    around, filters = _around(conversion), conversion.filters
    form = replace(PLAIN, message=message)
    for number, link in enumerate(conversion.links):
        before, after = around[number]
        here = [one for one in filters if (one.version <= link.older) is upwards]
        state = yield from _filtered(state, here, conversion, message)
        if state is None:
            return
        filters = filters[len(here) :]
        part = next((part for part in parts if _is_of(part.link, link)), None)
        target = link.newer if upwards else link.older
        if part is not None and number == begin:
            types = place((*part.at, "forms"))
            try:
                links = conversion.links[begin:]
                asking = conversion.of_request
                state = _State(encode(typed(state.fields, links, of_request=asking)))
            except ConversionError:
                yield _TracedChange(types, target, None)
                return
            yield _TracedChange(types, target, state.body)
        for step in before:
            step.convert(None, form)
        for at, change in _changes(part, link, upwards=upwards):
            alone = replace(link, changes=(change,), query=(), headers=())
            beside_it = _beside(message)
            try:
                made = _converted(state, _alone(alone, conversion), message)
            except ConversionError:
                yield _TracedChange(place(at), target, None)
                return
            changed = json_body.parse(made.body) != json_body.parse(state.body)
            beside = tuple(text for text in _beside(message) if text not in beside_it)
            yield _TracedChange(
                place(at), target, made.body, changed=changed or bool(beside), beside=beside
            )
            state = made
        for step in after:
            step.convert(None, form)
    yield from _filtered(state, filters, conversion, message)


def _filtered(
    state: _State, filters: Sequence[MessageFilter], conversion: BodyConversion, message: Message
) -> Generator[_TracedChange, None, _State | None]:
    """Yield the body after each filter that changes it; return it, or None if it is refused."""
    for one in filters:
        alone = BodyConversion((), conversion.direction, conversion.of_request).filtered((one,))
        try:
            made = _converted(state, alone, message)
        except ConversionError:
            yield _TracedChange(one.name, one.version, None)
            return None
        if made.body != state.body:
            yield _TracedChange(one.name, one.version, made.body)
        state = made
    return state


def _around(conversion: BodyConversion) -> list[tuple[list[BodyStep], list[BodyStep]]]:
    links = [replace(link, changes=(), forms=None, events={}) for link in conversion.links]
    if not conversion.needs_message:
        return [([], [])] * len(links)
    steps = [*message_steps(links, conversion.direction, conversion.of_request)]
    if conversion.direction is Direction.UP:
        return [([step], []) for step in steps]
    return [([first], [last]) for first, last in zip(steps[::2], steps[1::2], strict=True)]


def _changes(
    part: Part | None, link: VersionLink, *, upwards: bool
) -> Iterator[tuple[Location, Change]]:
    if part is None:
        return  # the version step converts only an operation
    entries = list(enumerate(part.config.changes))
    if len(link.changes) < len(entries):  # only the changes that move values into a body are used
        declared = zip(entries, part.link.changes, strict=True)
        entries = [entry for entry, change in declared if change.carried]
    changes = [
        named
        for (index, entry), change in zip(entries, link.changes, strict=True)
        for named in _each(change, (*part.at, "changes", index, *entry.named()), part, ())
    ]
    yield from changes if upwards else reversed(changes)


def _begun(body: bytes, message: Message) -> _State | None:
    body_format, codings, encoding = described(write_fields(message.headers))
    if codings or encoding is not None:
        return None
    if body_format in (BodyFormat.JSON, BodyFormat.MERGE_PATCH, *MAYBE_JSON):
        body = body or b"{}"
        return None if json_body.parse(body) is body else _State(body)
    if body_format is BodyFormat.FORM and is_form(body):
        return _State(body, read_form(body))
    return None


def _alone(link: VersionLink, conversion: BodyConversion) -> BodyConversion:
    return BodyConversion((link,), conversion.direction, conversion.of_request)


def _converted(state: _State, conversion: BodyConversion, message: Message) -> _State:
    if state.fields is None:
        call = partial(json_body.convert, state.body, conversion, message)
        return _State(run_now(call, conversion.timeout))
    convert = partial(conversion.convert, state.fields, replace(FORM, message=message))
    fields = run_now(convert, conversion.timeout)
    return _State(_shown(fields), fields)


def _shown(fields: Document) -> bytes:
    """Encode form fields as a form, or as JSON if they are nested between two changes."""
    try:
        return write_form(fields)
    except ConversionError:
        return encode(fields)


def _beside(message: Message) -> list[str]:
    fields = [f"{line.name}: {line.value}" for line in message.headers]
    query = message.query if message.status is None else ()  # a response does not change the query
    return [*fields, *(f"?{line.name}={line.value or ''}" for line in query)]


def _is_of(declared: VersionLink, used: VersionLink) -> bool:
    bare, found = (
        replace(link, methods=None, operations=None, media=None, response_type=None)
        for link in (declared, used)
    )
    known = (bare, bare.for_patch())
    return found in known or found in map(carrying, known)


def _each(
    change: Change, at: Location, part: Part, inside: tuple[str, ...]
) -> Iterator[tuple[Location, Change]]:
    group = change.group
    if group is None or group.name in inside:
        yield at, change
        return
    declared = zip(part.groups[group.name], group.changes, strict=True)
    for index, (entry, inner) in enumerate(declared):
        there = (*part.at[:2], "groups", group.name, index, *entry.named())
        for where, one in _each(inner, there, part, (*inside, group.name)):
            yield where, replace(group, name="", groups={"": (one,)}).compile()
