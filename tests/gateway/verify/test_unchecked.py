"""The list of what `verify` does not check, in its report and in the docs."""

from pathlib import Path
from typing import Any

from gateway.verify.openapi.openapi import Description
from gateway.verify.unchecked import Unchecked, unchecked_parts

ROOT = Path(__file__).parents[3]
JSON = {"application/json": {"schema": {"type": "string"}}}


def document(operation: dict[str, Any], **more: Any) -> Description:
    item: dict[str, Any] = {"get": {"responses": {}, **operation}, **more.pop("item", {})}
    return Description({"openapi": "3.2.0", "paths": {"/a/{b}": item}, **more}, "v1")


def test_the_docs_list_each_reason() -> None:
    text = (ROOT / "docs" / "verify.md").read_text()
    rows = "".join(f"| {one.what} | {one.instead} |\n" for one in Unchecked)
    assert f"| Not checked | What to do instead |\n| --- | --- |\n{rows}\n" in text


def test_each_part_that_is_not_read_is_listed_with_its_operations() -> None:
    parameters = [
        {"name": name, "in": place, "required": True, "schema": {"type": "string"}}
        for name, place in (("b", "path"), ("c", "cookie"), ("q", "query"))
    ]
    form = {"in": "querystring", "name": "s", "content": {"application/json": {"schema": {}}}}
    body = {**JSON, "application/x-www-form-urlencoded": {}, "text/csv": {}}
    events = {**JSON, "text/event-stream": {"itemSchema": {"type": "object"}}}
    operation = {
        "parameters": [*parameters, form],
        "requestBody": {"content": body},
        "responses": {"200": {"content": events}, "404": {"content": {"text/html": {}}}},
        "callbacks": {"done": {}},
    }
    item: dict[str, Any] = {"query": {}, "additionalOperations": {"COPY": {}}}
    found = unchecked_parts([document(operation, item=item, webhooks={"sent": {}}), document({})])
    stream = Unchecked.STREAM.reason.format("JSON lines or event streams")
    assert {reason: list(names) for reason, names in found.items()} == {
        stream: ["GET /a/{b}"],
        Unchecked.MEDIA_TYPES.reason: ["GET /a/{b}"],
        Unchecked.COOKIES.reason: ["GET /a/{b}"],
        Unchecked.QUERY_STRING.reason: ["GET /a/{b}"],
        Unchecked.METHODS.reason: ["QUERY /a/{b}", "COPY /a/{b}"],
        Unchecked.CALLBACKS.reason: ["GET /a/{b}"],
        Unchecked.WEBHOOKS.reason: ["sent"],
    }


def test_a_media_type_may_be_a_component() -> None:
    content = {"application/json": {"$ref": "#/components/mediaTypes/Text"}}
    parts = {"mediaTypes": {"Text": JSON["application/json"]}}
    described = document({"responses": {"200": {"content": content}}}, components=parts)
    assert described.operations[0].responses["200"] == {"type": "string"}
