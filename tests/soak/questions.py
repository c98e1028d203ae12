"""The requests of the load, and the expected responses."""

import json
from itertools import count
from random import Random
from typing import Any

from tests.gateway.talk import Answer
from tests.soak.load import Question
from tests.soak.mirror import catalog

PERSON: dict[int, Any] = {
    1: {"name": "Bob Charlie"},
    2: {"name": {"firstName": "Bob", "lastName": "Charlie"}},
}
VENDOR = "application/vnd.comp.app-v{}+json"
_tokens = count()


def is_json(answer: Answer, expected: Any, *, kind: str = "application/json") -> bool:
    said = answer["content-type"].partition(";")[0]
    return answer.status == 200 and said == kind and json.loads(answer.body) == expected


def person(random: Random) -> Question:
    version = random.choice((1, 2))
    kind = "application/json"
    fields: tuple[str, ...] = ()
    match random.choice(("path", "query", "header", "accept")):
        case "path":
            line = f"GET /v{version}/person"
        case "query":
            line = f"GET /person/param?version={version}"
        case "header":
            line, fields = "GET /person/header", (f"X-API-VERSION: {version}",)
        case _:
            kind = VENDOR.format(version)
            line, fields = "GET /person/accept", (f"Accept: {kind}",)
    expected = PERSON[version]
    return Question(
        f"person_v{version}", line, lambda answer: is_json(answer, expected, kind=kind), fields
    )


def echo(random: Random) -> Question:
    path = f"/echo/{next(_tokens)}?x={random.random()}"

    def right(answer: Answer) -> bool:
        return is_json(answer, {"path": path, "request_id": answer["x-request-id"]})

    return Question("mirror", f"GET {path}", right)


def listed(random: Random) -> Question:
    size = random.choice((0, 1, 10, 500))
    expected = [{**item, "name": f"First{item['id']} Last"} for item in catalog(size)]
    return Question(
        "mirror", f"GET /v1/catalog?size={size}", lambda answer: is_json(answer, expected)
    )


def posted(random: Random) -> Question:
    document = {"name": f"N{next(_tokens)} Last", "x": random.random(), "y": [None, "\u00e9"]}
    return Question(
        "mirror", "POST /v1/catalog", lambda answer: is_json(answer, document), body=document
    )


def written(key: str) -> Question:
    document = {"name": f"N{key} Last"}
    return Question(
        "mirror", "POST /v1/catalog", lambda answer: is_json(answer, document), (), document, key
    )


def refused(random: Random) -> Question:
    line, fields, status, code = random.choice(
        (
            ("GET /v3/person", (), 404, "version_unknown"),
            ("GET /person/param", (), 400, "version_missing"),
            ("GET /person/header", ("X-API-VERSION: 01",), 400, "version_malformed"),
            ("GET /person/accept", ("Accept: */*",), 406, "version_missing"),
            ("GET /nowhere", (), 404, "not_found"),
            ("DELETE /v1/person", (), 405, "method_not_allowed"),
        )
    )

    def right(answer: Answer) -> bool:
        return answer.status == status and json.loads(answer.body)["code"] == code

    return Question("", line, right, fields)


def any_of(random: Random) -> Question:
    kinds = (person, person, person, echo, listed, posted, refused)
    return random.choice(kinds)(random)
