"""The JSON Schema of gateway.yaml, for editors."""

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from math import inf
from typing import Any, get_args

from pydantic import BaseModel

from gateway.base.model import SectionModel
from gateway.rules.root import Config

_ANNOTATIONS = ("title", "description", "default")


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of gateway.yaml.

    Editors read the file before variables are replaced. So wherever the schema requires a number or
    a string with a pattern, it also accepts a variable.
    """
    described = Config.model_json_schema()
    models = {model.__name__: model for model in _models(SectionModel)}
    for model in [*models.values()]:
        models |= {one.__name__: one for one in _dataclasses(model)}
    for name, definition in (("Config", described), *described["$defs"].items()):
        properties = definition.get("properties", {})
        for one in properties.values():
            if any("$ref" in part for part in one.get("anyOf", ())):
                one.pop("title", None)  # the referenced model has its own title
        for key, description in descriptions(models[name]) if properties else ():
            properties[key] = dict(sorted({**properties[key], "description": description}.items()))
    schema = _for_editors(described)
    del schema["required"]  # `services` and `apis` may be in an included file
    schema["$defs"]["Variable"] = {
        "description": "An environment variable, as ${NAME} or ${NAME:-default}.",
        "pattern": r"\$\{",
        "type": "string",
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _models(base: type[SectionModel]) -> Iterator[type]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _dataclasses(model: type[SectionModel]) -> Iterator[type]:
    for field in model.model_fields.values():
        for one in (field.annotation, *get_args(field.annotation)):
            if isinstance(one, type) and is_dataclass(one):
                yield one


def descriptions(model: type) -> Iterator[tuple[str, str]]:
    """Yield each key of a model with the docstring of its field.

    pydantic could read the docstrings when it defines the models. But this would take time and
    memory in every process, and only this schema needs the docstrings.
    """
    for part in reversed(model.__mro__):
        if part is BaseModel or not (issubclass(part, BaseModel) or is_dataclass(part)):
            continue
        definition = _classes(part.__module__).get(part.__name__)
        if definition is None:  # the model is created from a table that contains the descriptions
            continue
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as docstring)),
                ):
                    fields = getattr(model, "model_fields", {})
                    alias = fields[name].alias if fields else None
                    yield alias or name, inspect.cleandoc(docstring)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {each.name: each for each in body if isinstance(each, ast.ClassDef)}


def _for_editors(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_for_editors(part) for part in schema]
    if not isinstance(schema, dict):
        return None if schema == inf else schema  # JSON has no infinity
    schema = {key: _for_editors(part) for key, part in schema.items()}
    if isinstance(schema.get("description"), str):
        schema["description"] = " ".join(schema["description"].split())
    if "patternProperties" in schema:
        schema["additionalProperties"] = False  # names in any other form are mistakes
    if "pattern" in schema or schema.get("type") in ("integer", "number"):
        about = {key: schema.pop(key) for key in _ANNOTATIONS if key in schema}
        return {**about, "anyOf": [schema, {"$ref": "#/$defs/Variable"}]}
    return schema
