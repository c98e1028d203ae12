"""`additional`: message parts that the older version's OpenAPI document lacks.

The document is compiled to plain data (`gateway.verify.openapi.shapes`): numbered shapes of
objects and arrays, and the operations that refer to the shapes. A shape is decoded when a message
first needs it.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

# msgspec: decodes a shape into a compact object, and leaves all other shapes unparsed (`Raw`).
import msgspec

from gateway.base.path_templates import Router
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import Document, JsonForm
from gateway.conversion.field_path import Tokens
from gateway.conversion.message import message_of
from gateway.conversion.parameter_change import QUERY, ParameterLines, Spelling
from gateway.conversion.unfit import UNFIT, UnfitKey
from gateway.versions.version import Version

ANY: Final = -1
"""The number of a shape for any value."""
CLOSED: Final = -2
"""The number for a place where the document allows no value."""
SCALAR: Final = -3
"""The number of a shape for values that are neither objects nor arrays."""

# The maximum number of places that an error lists.
_LISTED = 20
_TOKEN = re.compile(r"\[([^\]]*)\]")


class Additional(StrEnum):
    PASS = "pass"  # noqa: S105  # not a password
    DROP = "drop"
    REFUSE = "refuse"


class AdditionalPolicy(NamedTuple):
    """The treatment of additional parts of requests and of responses.

    Attributes:
        name: The key in the configuration, as metrics and the log name it.
    """

    requests: Additional = Additional.PASS
    responses: Additional = Additional.PASS
    name: str = ""

    @property
    def passes(self) -> bool:
        return self.requests is self.responses is Additional.PASS


class Shape(msgspec.Struct, array_like=True, frozen=True):
    """The documented members of an object, and the elements of an array, as numbers of shapes.

    Attributes:
        rest: The shape of undocumented members, or CLOSED.
        by: The name of a discriminator, and the shape for each of its values.
        read_only: The members of a request that are `readOnly`.
    """

    names: dict[str, int]
    rest: int = CLOSED
    items: int = ANY
    by: tuple[str, dict[str, int]] | None = None
    read_only: tuple[str, ...] = ()


class OperationShapes(msgspec.Struct, frozen=True, eq=False):
    """An operation of a document. The numbers refer to shapes of the document.

    Attributes:
        base: The path of the document's server, with which `path` begins.
        query: The shape whose names are the query parameters.
        responses: The shape of JSON responses by status: `200`, `2XX` or `default`.
    """

    method: str
    path: str
    base: str
    query: int
    request: int = ANY
    form: int = ANY
    responses: dict[str, int] = {}

    @property
    def shape(self) -> str:
        return re.sub(r"\{[^{}]*\}", "{}", self.path)

    @property
    def bare_shape(self) -> str:
        return re.sub(r"\{[^{}]*\}", "{}", self.path.removeprefix(self.base))

    def response(self, status: int) -> int:
        near = (str(status), f"{status // 100}XX", f"{status // 100}xx", "default")
        return next((self.responses[key] for key in near if key in self.responses), ANY)


class DocumentShapes(msgspec.Struct, frozen=True, eq=False):
    """The compiled form of an OpenAPI document; it can be encoded as JSON."""

    shapes: list[msgspec.Raw]
    operations: list[OperationShapes]


_shape = msgspec.json.Decoder(Shape).decode


class DocumentedVersion:
    """A version whose document is needed.

    Attributes:
        loaded: The document; None until it is loaded. A later version of the document replaces it.
        required: Whether requests that need the document are refused until it is loaded.
    """

    __slots__ = ("loaded", "required", "version")

    def __init__(self, version: Version, required: bool) -> None:
        self.version = version
        self.required = required
        self.loaded: LoadedDocument | None = None

    @property
    def is_missing(self) -> bool:
        return self.required and self.loaded is None


class LoadedDocument:
    """The operations that the document of a version describes, found by method and path.

    Attributes:
        reserved: The query parameters that the gateway reads itself, which are never additional.
    """

    __slots__ = ("_known", "reserved", "router", "shapes", "version")

    def __init__(
        self,
        version: Version,
        shapes: Sequence[msgspec.Raw],
        router: Router[dict[str, OperationShapes]],
        reserved: frozenset[str],
    ) -> None:
        self.version = version
        self.shapes = shapes
        self.router = router
        self.reserved = reserved
        self._known: dict[int, Shape] = {}

    def find(self, method: str, path: str) -> OperationShapes | None:
        found = self.router.find(path)
        return None if found is None else found[0].get(method)

    def methods(self, path: str) -> list[str]:
        found = self.router.find(path)
        return [] if found is None else list(found[0])

    def shape(self, number: int) -> Shape:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = _shape(self.shapes[number])
        return known

    def trimmed(
        self, value: Document, number: int, form: JsonForm, at: Tokens, found: list[ErrorPlace]
    ) -> Document:
        """Return a value without its undocumented fields, whose places are added to `found`.

        A value that has only documented fields is returned itself.
        """
        if number < 0:
            return value
        shape = self.shape(number)
        items, has_fields = shape.items, bool(shape.names) or shape.rest != ANY
        opened = form.open(value) if items >= 0 or has_fields else value
        if isinstance(opened, dict) and has_fields:
            return self._trimmed_object(value, opened, number, form, at, found)
        if items < 0 or not isinstance(opened, list):
            return value
        changed = False
        for index, element in enumerate(opened):
            made = self.trimmed(element, items, form, (*at, index), found)
            if made is not element:
                opened[index], changed = made, True
        return (form.close(opened) if at else opened) if changed else value

    def _trimmed_object(
        self,
        value: Document,
        opened: dict[str, Document],
        number: int,
        form: JsonForm,
        at: Tokens,
        found: list[ErrorPlace],
    ) -> Document:
        shape = self.shape(number)
        if shape.by is not None and shape.by[0] in opened:
            chosen = shape.by[1].get(str(form.open(opened[shape.by[0]])), number)
            if chosen < 0:
                return value
            shape = self.shape(chosen)
        names, changed = shape.names, dict[str, Document]()
        gone: list[str] = []
        for name, member in opened.items():
            inner = names.get(name)
            if inner is None:  # the key of a repeated member has the hash of its identity
                inner = names.get(str(name), shape.rest)
            if inner == CLOSED:
                gone.append(name)
                found.append((*at, str(name)))
            elif inner >= 0:
                made = self.trimmed(member, inner, form, (*at, name), found)
                if made is not member:
                    changed[name] = made
        if not gone and not changed:
            return value
        for name in gone:
            del opened[name]
        opened.update(changed)
        return form.close(opened) if at else opened

    def writable(self, value: Document, number: int) -> Document:
        """Return a parsed value without the members that are `readOnly`."""
        if number < 0:
            return value
        shape = self.shape(number)
        if isinstance(value, list):
            return [self.writable(each, shape.items) for each in value]
        if not isinstance(value, dict):
            return value
        if shape.by is not None:
            chosen = shape.by[1].get(str(value.get(shape.by[0])), ANY)
            shape = shape if chosen < 0 else self.shape(chosen)
        return {
            name: self.writable(inner, shape.names.get(name, shape.rest))
            for name, inner in value.items()
            if name not in shape.read_only
        }

    def documents_name(self, name: str, number: int) -> bool:
        """Return whether a query or form may have a name, such as `filter[name]` or `ids[]`."""
        if number < 0:
            return number != CLOSED
        shape = self.shape(number)
        base, bracket, _ = name.partition("[")
        if name in shape.names or not (bracket and base):
            return name in shape.names or shape.rest != CLOSED
        inner = shape.names.get(base, shape.names.get(f"{base}[]", shape.rest))
        for token in _TOKEN.findall(name[len(base) :]):
            if inner < 0:
                return inner == ANY
            shape = self.shape(inner)
            is_index = not token or token.isdecimal()
            if is_index and shape.items != ANY and token not in shape.names:
                inner = shape.items
            else:
                inner = shape.names.get(token, shape.rest)
        return inner != CLOSED


class MessageFilter:
    """Removes or refuses what the document of one version lacks, in the form of that version.

    Args:
        response: The shape of the response body; None for a request.
    """

    __slots__ = ("_document", "_key", "_operation", "_response", "_result", "version")

    def __init__(
        self,
        document: LoadedDocument,
        operation: OperationShapes,
        policy: AdditionalPolicy,
        response: int | None,
    ) -> None:
        self.version = document.version
        self._document, self._operation, self._response = document, operation, response
        of_request = response is None
        self._result = policy.requests if of_request else policy.responses
        message = "request" if of_request else "response"
        self._key = UnfitKey(policy.name, message, self._result)

    @property
    def name(self) -> str:
        return self._key.change

    @property
    def drops(self) -> bool:
        return self._result is Additional.DROP

    def message(self, document: Document, form: JsonForm) -> Document:
        """Filter a body, and the query of its message if the message is a request."""
        message = message_of(form)
        if message is not None and self._response is None:
            message.query[:] = self.silently(message.query, QUERY)
        return self.body(document, form)

    def body(self, document: Document, form: JsonForm) -> Document:
        if not form.typed:
            return self._form(document, form)
        shape = self._operation.request if self._response is None else self._response
        found: list[ErrorPlace] = []
        made = self._document.trimmed(document, shape, form, (), found)
        if found:
            self._report(found)
        return made

    def _form(self, document: Document, form: JsonForm) -> Document:
        fields = form.open(document)
        if self._operation.form < 0 or not isinstance(fields, dict):
            return document
        knows = partial(self._document.documents_name, number=self._operation.form)
        gone = [name for name in fields if not knows(name)]
        if not gone:
            return document
        self._report([(name,) for name in gone])
        return {name: one for name, one in fields.items() if name not in gone}

    def query(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        made = self.silently(lines, spelling)
        if made is not lines:
            gone = dict.fromkeys(line.key for line in lines if line not in made)
            self._report([Beside(spelling.what, tuple(gone))], len(gone))
        return made

    def silently(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Filter a query without counting its parameters, since they are already counted."""
        knows = partial(self._document.documents_name, number=self._operation.query)
        names = dict.fromkeys(line.key for line in lines if not knows(line.key))
        gone = tuple(name for name in names if name not in self._document.reserved)
        if gone and self._result is Additional.REFUSE:
            raise ConversionError(self._reason, Beside(spelling.what, gone))
        return [line for line in lines if line.key not in gone] if gone else lines

    @property
    def _reason(self) -> str:
        return f"unknown in version {self.version}"

    def _report(self, places: Sequence[ErrorPlace], count: int = 0) -> None:
        error = ConversionError(self._reason, places[0], also=places[1:_LISTED])
        if self._result is Additional.REFUSE:
            raise error
        values = UNFIT.get()
        if values is not None:
            values.note(self._key, str(error), count or len(places))
