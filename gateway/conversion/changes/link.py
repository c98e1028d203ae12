"""`link`: a URL in a body or header field that must lead each client to its own version."""

from gateway.conversion.change import Change, rewrite_opened, value_change
from gateway.conversion.changes.change_section import BodySection, BuildContext, ParameterSection
from gateway.conversion.document import Document, JsonForm, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import (
    LineStep,
    ParameterChange,
    ParameterLines,
    Spelling,
    rewritten,
    same_name,
)
from gateway.conversion.schema import Flat, SchemaImage, wide

_ALWAYS_MAPPED = frozenset({"location", "content-location", "refresh", "link"})


class Link(BodySection):
    """Convert a URL in a body, as for Location, so that it leads clients to their own version."""

    keyword = "link"

    field: str
    """The field that holds the URL, which has the same name in both versions."""

    @property
    def maps_links(self) -> bool:
        return True

    def compile_body(self, context: BuildContext) -> Change | None:
        return context.value_change(self.field, map_link, "field")


class LinkParameter(ParameterSection):
    """Convert a URL in a header field, as for Location, which needs no such change."""

    keyword = "link"

    field: str
    """The header field that holds the URL, such as Azure-AsyncOperation."""

    @property
    def needs_message(self) -> bool:
        return True

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        if not context.header:
            context.mistakes.add("maps only header fields; write it below headers", "field")
        name = context.name(self.field, "field")
        if name.lower() in _ALWAYS_MAPPED:
            context.mistakes.add("is mapped without this change; remove the change", "field")
        return ParameterChange(same_name(name), _mapping(name), _mapping(name))


def _mapping(name: str) -> LineStep:
    def step(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        message = spelling.message
        if not isinstance(message, Message):
            return lines
        return rewritten(name, message.link, message.link).up(lines, spelling)

    return step


def map_link(scopes: tuple[Scope, ...], field: Keys) -> Change:
    rewrite = rewrite_opened(_mapped, _effect)
    return value_change(scopes, field, rewrite, rewrite)


def _mapped(form: JsonForm, text: Document) -> Document:
    if not isinstance(text, str):
        refuse("a string", text)
    mapped = text if form.message is None else form.message.link(text)
    return text if mapped == text else mapped


def _effect(flat: Flat, image: SchemaImage) -> object:
    if flat["type"] != "string":
        return image.refused(flat, f"expected a string, found {flat['type']}")
    return wide({key: flat[key] for key in ("type", "format") if key in flat})
