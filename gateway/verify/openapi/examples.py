"""Examples: many bodies that a schema allows, from the plain to the strange."""

import warnings
from functools import lru_cache
from typing import Any

import msgspec

# Schemathesis: the generator of bodies from OpenAPI schemas that is kept up (hypothesis-jsonschema
# no longer runs on current Hypothesis, polyfactory starts from Python types instead of schemas).
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from gateway.verify.openapi.json_schema import Schema, closed, definitions


class NoExamplesError(Exception):
    """A schema that nothing can be generated from; the text says why."""


def generate(schema: Schema, count: int, start: int) -> tuple[object, ...]:
    """Return `count` bodies that the schema allows, the same ones for one `start`.

    Raises:
        NoExamplesError: the schema contradicts itself, or says what the generator does not know.
    """
    return _generate(msgspec.json.encode(schema), count, start)


@lru_cache(maxsize=64)  # operations share schemas, and examples cost more than all else
def _generate(text: bytes, count: int, start: int) -> tuple[object, ...]:
    bodies: list[object] = []

    def collect(case: schemathesis.Case[Any]) -> None:
        bodies.append(_plain(case.body))

    # Shrinking is not Hypothesis's here: each step would cost a new example, and the schema itself
    # says at once whether a smaller document is one (see `smallest`).
    chosen = settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seed(start)(chosen(given(_strategy(msgspec.json.decode(text)))(collect)))()
    except Exception as error:  # whatever the generator raises, it is the schema's or its own
        raise NoExamplesError(str(error).partition("\n")[0]) from None
    return tuple(bodies)


def _plain(body: object) -> object:
    """Return a body with whole numbers as integers are written: `5.0` is one, but nobody's."""
    match body:
        case dict():
            return {key: _plain(value) for key, value in body.items()}
        case list():
            return [_plain(value) for value in body]
        case float() if body.is_integer():
            return int(body)
    return body


def _strategy(schema: Schema) -> SearchStrategy[schemathesis.Case[Any]]:
    # The generator makes requests; a response is what a request with such a body holds.
    body = closed(schema)
    content = {"application/json": {"schema": {k: v for k, v in body.items() if k != "components"}}}
    document: dict[str, Any] = {
        "openapi": "3.1.1",
        "info": {"title": "examples", "version": "1"},
        "paths": {
            "/": {
                "post": {
                    "requestBody": {"required": True, "content": content},
                    "responses": {"200": {"description": "none"}},
                }
            }
        },
        "components": {"schemas": dict(definitions(body))},
    }
    return schemathesis.openapi.from_dict(document)["/"]["POST"].as_strategy()
