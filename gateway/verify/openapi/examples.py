"""Generation of example bodies that a schema allows, including unusual ones."""

import warnings
from functools import lru_cache
from typing import Any

import msgspec

# Schemathesis: the maintained generator of bodies from OpenAPI schemas (hypothesis-jsonschema does
# not run on current Hypothesis, and polyfactory generates from Python types, not from schemas).
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from gateway.verify.openapi.json_schema import Schema, closed, definitions


class NoExamplesError(Exception):
    """No example can be generated from a schema; the message has the reason."""


def generate(schema: Schema, count: int, start: int) -> tuple[object, ...]:
    """Return `count` bodies that the schema allows; the same `start` gives the same bodies.

    Raises:
        NoExamplesError: the schema contradicts itself, or the generator does not support it.
    """
    return _generate(msgspec.json.encode(schema), count, start)


@lru_cache(maxsize=64)  # operations share schemas, and generating examples is slow
def _generate(text: bytes, count: int, start: int) -> tuple[object, ...]:
    bodies: list[object] = []

    def collect(case: schemathesis.Case[Any]) -> None:
        bodies.append(_plain(case.body))

    # Hypothesis does not shrink examples here: each step would generate a new example, whereas
    # `smallest` checks a smaller document directly against the schema.
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
    except Exception as error:  # the generator raises many kinds of errors for a bad schema
        raise NoExamplesError(str(error).partition("\n")[0]) from None
    return tuple(bodies)


def _plain(body: object) -> object:
    """Return a body with whole floats as integers: JSON senders write `5`, not `5.0`."""
    match body:
        case dict():
            return {key: _plain(value) for key, value in body.items()}
        case list():
            return [_plain(value) for value in body]
        case float() if body.is_integer():
            return int(body)
    return body


def _strategy(schema: Schema) -> SearchStrategy[schemathesis.Case[Any]]:
    # The generator makes only requests, so each schema becomes the body of a request.
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
