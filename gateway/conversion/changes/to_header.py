"""`to_header`, `to_query` and their inverses: a body field that the other version has elsewhere.

The value is in a header field, a link (RFC 8288) or a query parameter of the other version.
"""

import dataclasses
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from gateway.base.urls import without_authority
from gateway.conversion.change import Change, DirectedChange, whole_body
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss, opposite
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, is_within
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    Missing,
    get,
    put,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys, Tokens
from gateway.conversion.message import CarriedValue, Message, Place, QueryWalk, message_of
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    ParameterLine,
    ParameterLines,
    Spelling,
    parse_query,
    write_query,
)
from gateway.conversion.scalars import BOOLEAN, NUMBER, NUMBER_TEXT, TEXT, WORDS, Type
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, listed, union
from gateway.conversion.steps import BODY
from gateway.versions.version import Version

VALUE, PATH = "{value}", "{path}"
_PRINTABLE = re.compile(r"[ -~]*\Z")
# One link of a Link header field, and its relation types (RFC 8288, section 3). A quoted string
# without a closing quote matches up to the end of the value. Otherwise the regular expression would
# search for the closing quote repeatedly.
_LINK = re.compile(r"<([^<>]*)>((?:\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|[^,\"])*+),?", re.DOTALL)
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QueryPlace:
    parameter: str

    @property
    def beside(self) -> Beside:
        return Beside(QUERY.what, (self.parameter,))

    @property
    def field_name(self) -> str | None:
        return None

    def applies(self, message: Message) -> bool:
        return message.status is None

    def take(self, message: Message) -> str | None:
        return _taken(message.query, self.parameter, QUERY)

    def give(self, message: Message, text: str, source: Tokens) -> None:
        _given(message.query, self.parameter, text, QUERY, source)


_BEGINS_WITH_PATH = re.compile(rf"/(?!/)|{re.escape(PATH)}")


@dataclass(frozen=True, slots=True)
class HeaderPlace:
    """A header field, or a part of its value.

    Attributes:
        text: The template of the field value: `{value}` stands for the carried value, and `{path}`
            for the path of the request.
    """

    field: str
    text: str = VALUE
    is_link: bool = False
    # The literal parts of the template, and the index of the part before `{value}`.
    _texts: tuple[str, ...] = dataclasses.field(init=False, repr=False, compare=False)
    _value: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        before, _, behind = self.text.partition(VALUE)
        texts = before.split(PATH)
        # Allow any prefix, because the URL may be absolute and the service may have another path.
        if self.is_link and before:
            texts.insert(0, "")
        object.__setattr__(self, "_value", len(texts) - 1)
        object.__setattr__(self, "_texts", (*texts, *behind.split(PATH)))

    @property
    def beside(self) -> Beside:
        return Beside(FIELDS.what, (self.field,))

    @property
    def field_name(self) -> str | None:
        return self.field

    def applies(self, message: Message) -> bool:  # required by the protocol Place
        return True

    def take(self, message: Message) -> str | None:
        taken = _taken(message.headers, self.field, FIELDS)
        if taken is None:
            return None
        value = self._read(taken)
        if value is None:
            raise ConversionError(f"is not written as '{self.text}'", self.beside)
        return message.link(taken) if self.is_link and self.text == VALUE else value

    def give(self, message: Message, text: str, source: Tokens) -> None:
        path = message.path if message.status is None else message.target
        written = self.text.replace(PATH, path).replace(VALUE, text)
        if self.is_link and _BEGINS_WITH_PATH.match(self.text):
            written = without_authority(written)
        _given(message.headers, self.field, written, FIELDS, source)

    def _read(self, text: str) -> str | None:
        """Return the carried value in a field value, or None if the template does not match.

        The literal parts of the template are searched from the end. A regular expression would give
        the same result, but would take quadratic time for a field value that does not match.
        """
        first, end, value = self._texts[0], len(text) - len(self._texts[-1]), None
        if end < len(first) or not (text.startswith(first) and text.endswith(self._texts[-1])):
            return None
        for number in range(len(self._texts) - 2, -1, -1):
            before = self._texts[number]
            begin = text.rfind(before, len(first), end) if number else 0
            if begin < 0:
                return None
            if number == self._value:
                value = text[begin + len(before) : end]
            end = begin
        return value


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """The URL of a link with a given relation (RFC 8288), or one query parameter of the URL.

    Attributes:
        parameter: The name of the query parameter in `version`; None for the whole URL.
        version: The version that has the value in the body.
    """

    relation: str
    parameter: str | None
    version: Version

    @property
    def beside(self) -> Beside:
        return Beside("link", (self.relation,))

    @property
    def field_name(self) -> str | None:
        return "Link"

    def applies(self, message: Message) -> bool:
        return message.status is not None

    def take(self, message: Message) -> str | None:
        found: list[str] = []
        kept = [each for line in message.headers for each in self._without(line, found)]
        if not found:
            return None
        message.headers[:] = kept
        if self.parameter is None:
            return message.link(found[0])
        query = found[0].partition("#")[0].partition("?")[2]
        # Convert the query from the service's version, where the parameter may have another name.
        walk = QueryWalk(parse_query(query), tuple(message.back))
        for line in walk.at(self.version):
            if line.key == self.parameter:
                return QUERY.read(line.value or "")
        return None

    def give(self, message: Message, text: str, source: Tokens) -> None:
        """Add the link to the response.

        If `parameter` is set, the URL of the link is the request's URL with another value for this
        query parameter.
        """
        url = text
        if self.parameter is not None:
            lines = message.way.at(self.version)
            place = next((i for i, one in enumerate(lines) if one.key == self.parameter), None)
            rest = [line for line in lines if line.key != self.parameter]
            made = ParameterLine(self.parameter, QUERY.name(self.parameter), QUERY.write(text))
            rest.insert(len(rest) if place is None else place, made)
            # Write the URL in the service's version. It is converted later, as are all other links.
            url = f"{message.target}?{write_query(message.way.to_service(self.version, rest))}"
        if not _PRINTABLE.match(url) or ">" in url:
            raise ConversionError(f"would be no URL as {self.beside}", source)
        written = f'<{url}>; rel="{self.relation}"'
        message.headers.append(ParameterLine("link", "Link", written))

    def _without(self, line: ParameterLine, found: list[str]) -> Iterator[ParameterLine]:
        if line.key != "link":
            yield line
            return
        kept: list[str] = []
        for match in _LINK.finditer(line.value or ""):
            relation = _REL.search(match[2])
            types = "" if relation is None else relation[1] or relation[2] or ""
            if self.relation in types.split():
                found.append(match[1])
            else:
                kept.append(f"<{match[1]}>{match[2]}".strip())
        if kept:
            yield line._replace(value=", ".join(kept))


def _taken(lines: ParameterLines, name: str, spelling: Spelling) -> str | None:
    key = spelling.key(name)
    values = [spelling.read(line.value or "") for line in lines if line.key == key]
    if not values:
        return None
    if values[1:]:
        raise ConversionError("occurs twice", Beside(spelling.what, (name,)))
    lines[:] = [line for line in lines if line.key != key]
    return values[0]


def _given(lines: ParameterLines, name: str, text: str, spelling: Spelling, source: Tokens) -> None:
    key = spelling.key(name)
    if any(line.key == key for line in lines):
        raise ConversionError("already exists", Beside(spelling.what, (name,)), rival=source)
    if spelling is FIELDS and not _PRINTABLE.match(text):
        reason = f"the {spelling.what} '{name}' can contain only printable ASCII"
        raise ConversionError(reason, source)
    lines.append(ParameterLine(key, spelling.name(name), spelling.write(text)))


_BOOLEANS = {text: value for value, text in WORDS.items()}


def carry(
    field: Keys, place: Place, kind: Type = TEXT, default: Document | Missing = MISSING
) -> Change:
    """Return a change that moves a value out of the body for the older version.

    A value that is absent in one version is absent in the other version. Null is not moved. The
    change applies to the whole body, because the location outside the body can hold only one value.

    A PATCH request gets no `default`, because a default would overwrite the stored value.
    """
    steps = _Carry(field, place, kind, default)
    return Change(
        (),
        ((*BODY, *field),),
        DirectedChange(steps.up, steps.put_effect, steps.origin_beside),
        DirectedChange(steps.down, steps.taken_effect, steps.origin_in_body),
        patch=None if default is MISSING else carry(field, place, kind),
        carried=CarriedValue(field, place, kind),
    )


@dataclass(frozen=True, slots=True)
class _Carry:
    field: Keys
    place: Place
    kind: Type
    default: Document | Missing

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        message = message_of(form)
        if message is None or not self.place.applies(message):
            return
        text = self.place.take(message)
        if text is None and self.default is MISSING:
            return
        body, keys = form.open(fields[BODY[0]]), self.field
        if not isinstance(body, dict):
            if text is None:
                return
            refuse("an object", body, *BODY)
        try:
            is_there = get(body, keys, form) is not MISSING
            if not is_there:
                value = form.take(self.default) if text is None else self._read(text, form)
                put(body, keys, value, form)
        except ConversionError as error:
            raise error.under(*BODY) from None
        if is_there:
            if text is not None:
                reason = "already exists"
                raise ConversionError(reason, (*BODY, *keys), rival=self.place.beside)
            return
        fields[BODY[0]] = form.close(body)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        message = message_of(form)
        if message is None or not self.place.applies(message):
            return
        body = form.open(fields[BODY[0]])
        if not isinstance(body, dict):
            return  # a body that is not an object has no such field
        try:
            value = take(body, self.field, form)
        except ConversionError as error:
            raise error.under(*BODY) from None
        fields[BODY[0]] = form.close(body)
        opened = None if value is MISSING else form.open(value)
        if opened is not None:
            text = self._text(value, opened, form)
            self.place.give(message, text, (*BODY, *self.field))

    def put_effect(self, flat: Flat, image: SchemaImage) -> object:
        def moved(body: Flat) -> object:
            if body["type"] != "object":
                return image.refused(body, "expected an object")
            image.misfit("a string of the message may not fit")
            value: object = {"type": "string" if self.kind is TEXT else str(self.kind)}
            if not isinstance(self.default, Missing):
                value = union((value, listed([self.default])))
            return image.put(body, self.field, value, required=False)

        return image.value(flat, BODY, moved, nulls=True)

    def taken_effect(self, flat: Flat, image: SchemaImage) -> object:
        def moved(body: Flat) -> object:
            if body["type"] != "object":
                return body
            rest, carried, _ = image.take(body, self.field)
            for one in image.alternatives(carried):
                if one["type"] not in (*JSON_TYPES[self.kind], "null"):
                    image.refused(one, f"expected a {self.kind}")
            return rest

        return image.value(flat, BODY, moved, nulls=True)

    def origin_beside(self, place: ErrorPlace) -> ErrorPlace:
        return self.place.beside if is_within(place, (*BODY, *self.field)) else place

    def origin_in_body(self, place: ErrorPlace) -> ErrorPlace:
        return (*BODY, *self.field) if place == self.place.beside else place

    def _read(self, text: str, form: JsonForm) -> Document:
        if self.kind is TEXT or not form.typed:
            return text
        if self.kind is NUMBER:
            if NUMBER_TEXT.match(text):
                return form.number(text)
        elif text in _BOOLEANS:
            return _BOOLEANS[text]
        raise ConversionError(f"is not a {self.kind}", self.place.beside)

    def _text(self, value: Document, opened: Document, form: JsonForm) -> str:
        if self.kind is NUMBER:
            digits = form.digits(value)
            if digits is not None:
                return digits
        elif self.kind is BOOLEAN and isinstance(opened, bool):
            return WORDS[opened]
        elif isinstance(opened, str) and (self.kind is TEXT or not form.typed):
            return opened
        expected = "a string" if self.kind is TEXT else f"a {self.kind}"
        return refuse(expected, opened, *BODY, *self.field)


class _CarrySection(BodySection):
    field: str
    """The path of the body field from the root of the body, such as `page.total`."""
    type: Literal["text", "number", "boolean"] = "text"
    """The type of the value in the body. The default is text."""
    default: JsonValue = None
    """The JSON value of the field, such as null, if a message has no value outside the body.
    Without it, the field is then absent."""

    @property
    def needs_message(self) -> bool:
        return True

    def own_losses(self) -> Iterator[Loss]:
        if "default" in self.model_fields_set:
            text = f"where '{self.field}' is absent, it comes back as the default"
            yield Loss(False, text, overwrites=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        keys = context.keys(self.field, "field")
        place = self._place(context)
        if keys is None or place is None:
            return None
        default = self.default if "default" in self.model_fields_set else MISSING
        return whole_body(carry(keys, place, Type(self.type), default))

    @abstractmethod
    def _place(self, context: BuildContext) -> Place | None:
        """Return the location outside the body, or None after recording a mistake."""


class ToQuery(_CarrySection):
    """Move a field of request bodies into a query parameter of the older version."""

    keyword = "to_query"

    parameter: str
    """The name of the query parameter in the older version."""

    def _place(self, context: BuildContext) -> Place | None:
        return QueryPlace(context.name(self.parameter, "parameter"))


FromQuery = opposite(
    ToQuery,
    "from_query",
    "Move a query parameter into request bodies of the older version: the reverse of to_query.",
)


# RFC 8288, section 3.3: a registered relation type, or a URI.
_RELATION = re.compile(r"[!#-;=?-\[\]^-~]+\Z")
_LINKS = frozenset({"location", "content-location"})


class ToHeader(_CarrySection):
    """Move a field of the body into a header field of the older version, such as a total."""

    keyword = "to_header"

    header: str
    """The name of the header field, such as X-Total-Count."""
    text: str | None = None
    """The template for the value of the header field: `{value}` stands for the value, and `{path}`
    for the path of the request, as in `{path}/{value}`. The default is the value alone."""
    rel: str | None = None
    """The relation of the link, such as `next`, if the header field is Link."""
    parameter: str | None = None
    """The query parameter that has the value in the URL of the link, such as `cursor`. The rest of
    the URL is the URL of the request. Without it, the value is the whole URL of the link."""

    @property
    def maps_links(self) -> bool:
        is_link = self.header.lower() in _LINKS and self.text in (None, VALUE)
        return is_link or (self.rel is not None and self.parameter is None)

    @property
    def linked(self) -> tuple[str, str] | None:
        if self.parameter is None:
            return None
        return "newer" if self.inverse else "older", self.parameter

    def overwritten(self) -> Iterator[Loss]:
        yield Loss(self.inverse, f"'{self.field}' is in the header field {self.header} alone")

    def _place(self, context: BuildContext) -> Place | None:
        if context.between is None:
            context.mistakes.add(
                "applies to the whole body, and a group applies to objects; write it in changes"
            )
            return None
        header = replace(context, header=True).name(self.header, "header")
        if (header.lower() == "link") != (self.rel is not None):
            context.mistakes.add(
                "header: Link requires it, and no other header has it; name the"
                " relation"
                " of the link, or remove it",
                "rel",
            )
        elif self.rel is None:
            if self.parameter is not None:
                context.mistakes.add(
                    "is only valid for a link; add header: Link and rel", "parameter"
                )
            text = VALUE if self.text is None else self.text
            if text.count(VALUE) == 1:
                return HeaderPlace(header, text, header.lower() in _LINKS)
            context.mistakes.add(f"needs {VALUE} once, as the placeholder for the value", "text")
        elif self.text is not None:
            context.mistakes.add("is not valid for a link; remove it, or name a parameter", "text")
        elif not _RELATION.match(self.rel):
            context.mistakes.add("is not a single relation type; write one such as next", "rel")
        else:
            return LinkPlace(self.rel, self.parameter, context.between[self.inverse])
        return None


FromHeader = opposite(
    ToHeader,
    "from_header",
    "Move a header field into a field of the older version's body: the reverse of to_header.",
)
