"""The command `init`: the configuration that it writes from OpenAPI documents."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.rules.load import load_file
from tests.command_line import run_here

OLD = {"type": "object", "properties": {"name": {"type": "string"}}}
NEW = {"type": "object", "properties": {"fullName": {"type": "string"}}}


def document(paths: dict[str, Any], version: str = "0.1.0", **more: Any) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pets API", "version": version},
        "paths": paths,
        **more,
    }


def get(schema: object, *parameters: object, media: str = "application/json") -> dict[str, Any]:
    content = {media: {"schema": schema}}
    response = {"description": "", "content": content}
    return {"get": {"parameters": [*parameters], "responses": {"200": response}}}


def header(version: str) -> dict[str, Any]:
    return {"name": "X-API-Version", "in": "header", "schema": {"default": version}}


def query(version: str) -> dict[str, Any]:
    return {"name": "api-version", "in": "query", "schema": {"enum": [version]}}


def init(folder: Path, *documents: object, options: str = "") -> tuple[int, str]:
    names = []
    for number, one in enumerate(documents, 1):
        names.append(f"{number}.json")
        (folder / names[-1]).write_text(json.dumps(one))
    out, err = StringIO(), StringIO()
    status = run_here(f"init {options} {' '.join(names)}", folder, {}, out, err)
    return status, out.getvalue() + err.getvalue()


def written(folder: Path, *documents: object, options: str = "") -> dict[str, Any]:
    """Return the data of the written file, which the gateway accepts."""
    status, text = init(folder, *documents, options=options)
    assert status == 0, text
    path = folder / "gateway.yaml"
    load_file(path, {})
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return data


def uncommented(folder: Path) -> dict[str, Any]:
    """Return the data of the written file with every suggested change, which it still accepts."""
    path = folder / "gateway.yaml"
    lines = path.read_text().replace("# {", "{").splitlines()
    path.write_text("\n".join(line for line in lines if "additional" not in line))
    load_file(path, {})
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return data


MECHANISMS = {
    "path, by servers": (
        document({"/pets": get(OLD)}, servers=[{"url": "https://a.example/v1"}]),
        document({"/pets": get(NEW)}, servers=[{"url": "https://a.example/v2"}]),
        ("1", "2", "/v{version}/pets", {"in": "path"}),
    ),
    "path, by paths": (
        document({"/api/v1/pets/": get(OLD)}),
        document({"/api/v2/pets/": get(NEW)}),
        ("1", "2", "/api/v{version}/pets/", {"in": "path"}),
    ),
    "header": (
        document({"/pets": get(OLD, header("1"))}),
        document({"/pets": get(NEW, header("2"))}),
        ("1", "2", "/pets", {"in": "header", "name": "X-API-Version"}),
    ),
    "query": (
        document({"/pets": get(OLD, query("2024-01-01"))}),
        document({"/pets": get(NEW, query("2025-06-01"))}),
        ("2024-01-01", "2025-06-01", "/pets", {"in": "query", "name": "api-version"}),
    ),
    "media type": (
        document({"/pets": get(OLD, media="application/vnd.pets.v1+json")}),
        document({"/pets": get(NEW, media="application/vnd.pets.v2+json")}),
        ("1", "2", "/pets", {"in": "accept", "media_type": "application/vnd.pets.v{version}+json"}),
    ),
    "parameter of the media type": (
        document({"/pets/": get(OLD, media="application/json; version=1.0")}),
        document({"/pets/": get(NEW, media="application/json; version=2.0")}),
        (
            "1.0",
            "2.0",
            "/pets/",
            {"in": "accept", "media_type": "application/json; version={version}"},
        ),
    ),
    "host name": (
        document({"/pets": get(OLD)}, servers=[{"url": "https://v1.a.example"}]),
        document({"/pets": get(NEW)}, servers=[{"url": "https://v2.a.example"}]),
        ("1", "2", "/pets", {"in": "host", "name": "v{version}.a.example"}),
    ),
    "none, with numbered versions": (
        document({"/pets": get(OLD)}, "1"),
        document({"/pets": get(NEW)}, "2"),
        ("1", "2", "/v{version}/pets", {"in": "path"}),
    ),
    "none, with dated versions": (
        document({"/pets": get(OLD)}, "2024-01-01"),
        document({"/pets": get(NEW)}, "2025-01-01"),
        ("2024-01-01", "2025-01-01", "/pets", {"in": "header", "name": "API-Version"}),
    ),
}


@pytest.mark.parametrize(("older", "newer", "expected"), MECHANISMS.values(), ids=MECHANISMS)
def test_init_finds_versions_and_mechanism_in_the_documents(
    tmp_path: Path, older: object, newer: object, expected: tuple[Any, ...]
) -> None:
    # The order of the arguments does not matter.
    api = written(tmp_path, newer, older)["apis"]["pets"]

    (endpoint,) = api["endpoints"]
    assert (*api["versions"], endpoint["path"], endpoint["version"]) == expected
    assert "GET" in endpoint["methods"]
    assert [one["schema"] for one in api["versions"].values()] == ["2.json", "1.json"]


def test_one_document_with_two_versions_in_its_paths_is_split(tmp_path: Path) -> None:
    both = document({"/v1/pets": get(OLD), "/v2/pets": get(NEW), "/health": get({})})

    api = written(tmp_path, both)["apis"]["pets"]

    assert {label: one["schema"] for label, one in api["versions"].items()} == {
        "1": "1.json",
        "2": "1.json",
    }
    assert [(one["path"], one.get("versions")) for one in api["endpoints"]] == [
        ("/v{version}/pets", None),
        ("/health", ["2"]),
    ]


def test_documents_without_common_paths_become_separate_apis(tmp_path: Path) -> None:
    users = {**document({"/users": get(OLD)}), "info": {"title": "Users", "version": "7"}}

    apis = written(tmp_path, document({"/pets": get(OLD)}), users)["apis"]

    assert {name: [*api] for name, api in apis.items()} == {
        "pets": ["service", "endpoints"],
        "users": ["service", "endpoints"],
    }


def test_the_user_may_name_labels_and_the_mechanism(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(json.dumps(document({"/pets": get(OLD)})))
    (tmp_path / "w.json").write_text(json.dumps(document({"/pets": get(NEW)})))
    out = StringIO()

    command = "init --in header:Pet-Version --out pets.yaml 2024=v.json 2025=w.json"
    assert run_here(command, tmp_path, {}, out, out) == 0

    api = yaml.safe_load((tmp_path / "pets.yaml").read_text())["apis"]["pets"]
    assert [*api["versions"]] == ["2024", "2025"]
    assert api["endpoints"][0]["version"] == {"in": "header", "name": "Pet-Version"}


ADDRESS = {
    "street": {"type": "string"},
    "town": {"type": "object", "properties": {"city": {"type": "string"}}},
}
OWNER = {"id": {"type": "string"}, "age": {"type": "integer"}}
CHANGES = {
    "rename": (
        {"name": {"type": "string"}},
        {"fullName": {"type": "string"}},
        [{"rename": {"field": "fullName", "to": "name"}}],
    ),
    "rename and other words": (
        {"state": {"type": "string", "enum": ["open", "gone"]}},
        {"status": {"type": "string", "enum": ["OPEN", "LOST"]}},
        [
            {"rename": {"field": "status", "to": "state"}},
            {
                "map": {
                    "field": "status",
                    "values": {"OPEN": "open", "LOST": "TODO"},
                    "unknown": "keep",
                }
            },
        ],
    ),
    "an empty word without a counterpart": (
        {"state": {"type": "string", "enum": ["open"]}},
        {"state": {"type": "string", "enum": ["", "open"]}},
        [{"map": {"field": "state", "values": {"": "TODO"}, "unknown": "keep"}}],
    ),
    "join": (
        {"name": {"type": "string"}},
        {
            "name": {
                "type": "object",
                "properties": {"first": {"type": "string"}, "last": {"type": "string"}},
            }
        },
        [{"join": {"fields": ["name.first", "name.last"], "into": "name"}}],
    ),
    "fields that have moved into an object": (
        {"street": {"type": "string"}, "city": {"type": "string"}},
        {"address": {"type": "object", "properties": ADDRESS}},
        [
            {"rename": {"field": "address.street", "to": "street"}},
            {"rename": {"field": "address.town.city", "to": "city"}},
        ],
    ),
    "a field that has moved into an object with a similar name": (
        {"room_no": {"type": "string"}},
        {"room": {"type": "object", "properties": {"number": {"type": "string"}}}},
        [{"rename": {"field": "room.number", "to": "room_no"}}],
    ),
    "an object in place of its id": (
        {"owner": {"type": "string"}},
        {"owner": {"type": "object", "properties": OWNER}},
        [{"extract": {"field": "owner", "key": "id"}}],
    ),
    "a list in an envelope": (
        {"tags": {"type": "array", "items": {"type": "object", "properties": OLD["properties"]}}},
        {"tags": {"type": "object", "properties": {"data": {"type": "array", "items": NEW}}}},
        [
            {"extract": {"field": "tags", "key": "data"}},
            {"rename": {"field": "tags.data[].fullName", "to": "tags.data[].name"}},
        ],
    ),
    "a list without its envelope": (
        {"tags": {"type": "object", "properties": {"data": {"type": "array", "items": OLD}}}},
        {"tags": {"type": "array", "items": NEW}},
        [
            {"envelope": {"field": "tags", "into": "data"}},
            {"rename": {"field": "tags[].fullName", "to": "tags[].name"}},
        ],
    ),
    "type": (
        {"total": {"type": "string"}},
        {"total": {"type": "integer"}},
        [{"type": {"field": "total", "newer": "number", "older": "text"}}],
    ),
    "time": (
        {"due": {"type": "integer"}},
        {"due": {"type": "string", "format": "date-time"}},
        [{"time": {"field": "due", "newer": "rfc3339", "older": "unix"}}],
    ),
    "list": (
        {"tags": {"type": "string"}},
        {"tags": {"type": "array", "items": {"type": "string"}}},
        [{"unwrap": {"field": "tags"}}],
    ),
    "null": (
        {"note": {"type": "string"}},
        {"note": {"type": ["string", "null"]}},
        [{"omit_null": {"field": "note"}}],
    ),
    "only the older version": ({"old": {"type": "string"}}, {}, [{"remove": {"field": "old"}}]),
    "notes": ({"a": {"description": "x"}}, {"a": {"description": "y", "x-a": 1}}, []),
}


@pytest.mark.parametrize(("older", "newer", "changes"), CHANGES.values(), ids=CHANGES)
def test_init_suggests_the_change_that_expresses_a_difference(
    tmp_path: Path, older: object, newer: object, changes: list[object]
) -> None:
    paths = (
        {"/pets": get({"type": "array", "items": {"type": "object", "properties": one}})}
        for one in (older, newer)
    )
    written(tmp_path, *map(document, paths, ("1", "2")))
    text = (tmp_path / "gateway.yaml").read_text()

    assert [
        one
        for entry in uncommented(tmp_path)["apis"]["pets"]["conversions"]
        for one in entry["changes"]
    ] == changes
    if changes:
        for part in (older, newer):
            assert all(json.dumps(one) in text for one in part.values())  # type: ignore[attr-defined]


def test_a_component_in_several_places_becomes_a_group(tmp_path: Path) -> None:
    reference = {"$ref": "#/components/schemas/N"}

    def tree(name: str, version: str) -> dict[str, Any]:
        properties = {"children": {"items": reference}, name: {"type": "string"}}
        components = {"schemas": {"N": {"type": "object", "properties": properties}}}
        paths = {"/tree": get(reference), "/trees": get({"type": "array", "items": reference})}
        return document(paths, version, components=components)

    documents = tree("title", "1"), tree("subtitle", "2")
    written(tmp_path, *documents)

    api = uncommented(tmp_path)["apis"]["pets"]

    assert api["groups"] == {
        "N": [
            {"rename": {"field": "subtitle", "to": "title"}},
            {"use": {"group": "N", "at": ["children[]"]}},
        ]
    }
    assert [entry["changes"] for entry in api["conversions"]] == [[], [{"use": {"group": "N"}}]]


def pet(version: str, key: str, *only_newer: str) -> dict[str, Any]:
    """Return a document with a pet, its input, and its patch, which lack the id."""

    def component(required: bool, *names: str) -> dict[str, Any]:
        properties = {name: {"type": "string"} for name in names}
        return {"type": "object", "properties": properties, "required": [*names] * required}

    fields = key, "color", *only_newer
    schemas = {
        "Pet": component(True, "id", f"{key}At", *fields),
        "PetInput": component(True, *fields),
        "PetPatch": component(False, *fields),
    }
    content = {
        name: {
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        }
        for name in schemas
    }
    done = {"responses": {"200": {"description": "", **content["Pet"]}}}
    writes = {"put": "PetInput", "post": "PetInput", "patch": "PetPatch"}
    item = {method: {"requestBody": content[name], **done} for method, name in writes.items()}
    components = {"schemas": schemas}
    return document({"/pets/{id}": {"get": done, **item}}, version, components=components)


def test_the_input_and_the_patch_of_a_resource_use_its_group(tmp_path: Path) -> None:
    written(tmp_path, pet("1", "named"), pet("2", "name", "status"))

    api = uncommented(tmp_path)["apis"]["pets"]

    assert [*api["groups"]] == ["Pet"]
    changes = [entry["changes"] for entry in api["conversions"] if entry["changes"]]
    assert {json.dumps(one) for one in changes} == {'[{"use": {"group": "Pet"}}]'}
    text = (tmp_path / "gateway.yaml").read_text()
    assert text.count("default: { field: status") == 1


def test_an_input_that_lacks_a_field_with_a_default_has_its_own_changes(tmp_path: Path) -> None:
    older, newer = pet("1", "named"), pet("2", "name", "status")
    del newer["components"]["schemas"]["PetInput"]["properties"]["status"]
    newer["components"]["schemas"]["PetInput"]["required"].remove("status")
    written(tmp_path, older, newer)

    api = uncommented(tmp_path)["apis"]["pets"]

    assert "default" in json.dumps(api["groups"]["Pet"])
    own = [one for one in api["conversions"] if one.get("on") == "requests"]
    assert "status" not in json.dumps([one for one in own if "PUT /pets/{id}" in one["operations"]])


@pytest.mark.parametrize(
    ("older", "newer", "hint"),
    [
        ("application/json", "application/problem+json; charset=utf-8", "application/json"),
        ("application/json", "application/json", None),
        ("text/html", "application/problem+json", None),
    ],
)
def test_errors_of_another_media_type_are_listed(
    tmp_path: Path, older: str, newer: str, hint: str | None
) -> None:
    documents = []
    for version, media in (("1", older), ("2", newer)):
        item = get(OLD)
        error = {"description": "", "content": {media: {"schema": {"type": "object"}}}}
        item["get"]["responses"]["404"] = error
        documents.append(document({"/pets": item}, version))
    written(tmp_path, *documents)
    text = (tmp_path / "gateway.yaml").read_text()
    assert ("# TODO Errors of version 2 have another media type." in text) == (hint is not None)
    if hint is not None:
        line = f"errors: {{ content_type: {hint} }}"
        assert f"    # {line}\n" in text
        path = tmp_path / "gateway.yaml"
        path.write_text(text.replace('"1": { ', f'"1": {{ {line}, '))
        load_file(path, {})


def test_references_with_percent_encoded_names_are_followed(tmp_path: Path) -> None:
    """Swagger tools write the name of a generic type, such as `Page<Pet>`, percent-encoded."""
    documents = (
        document(
            {"/pets": get({"$ref": "#/components/schemas/Page%3CPet%3E"})},
            version,
            components={"schemas": {"Page<Pet>": schema}},
        )
        for version, schema in (("1", OLD), ("2", NEW))
    )
    written(tmp_path, *documents)
    assert "rename: { field: fullName, to: name }" in (tmp_path / "gateway.yaml").read_text()


def test_operations_and_parameters_that_differ_are_listed(tmp_path: Path) -> None:
    page = {"name": "page_size", "in": "query", "schema": {"type": "integer"}}
    size = {"name": "pageSize", "in": "query", "schema": {"type": "integer"}}
    moved = get(OLD)
    moved["get"]["operationId"] = "find"
    written(
        tmp_path,
        document({"/pets": get(OLD, page), "/a": moved, "/gone": get(OLD)}, "1"),
        document({"/pets": get(OLD, size), "/b": moved, "/new": get(OLD)}, "2"),
    )
    text = (tmp_path / "gateway.yaml").read_text()

    assert '#     - { newer: "GET /b", older: "GET /a" }' in text
    assert '#     - { newer: "GET /new", refuse: {} }' in text
    assert '#     - { older: "GET /gone", refuse: {} }' in text
    entry = uncommented(tmp_path)["apis"]["pets"]["conversions"][-1]
    assert entry["query"] == [{"rename": {"field": "pageSize", "to": "page_size"}}]


def test_unusual_paths_and_names_are_accepted(tmp_path: Path) -> None:
    names = ["a.b", "*", "$x", "on", "é"]
    odd = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    other = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    paths = (
        "/{version}/compare/{base}...{head}",
        "/{a-b}/{a_b}",
        "/$batch/{id}",
        "/{id}/${id}",
        "/with space",
    )
    documents = (
        document({path: get(schema) for path in paths}, version)
        for schema, version in ((odd, "2024-01-01"), (other, "2025-01-01"))
    )

    api = written(tmp_path, *documents)["apis"]["pets"]

    assert len(api["endpoints"]) == len(paths) - 1
    assert "# left out: /with space" in (tmp_path / "gateway.yaml").read_text()
    uncommented(tmp_path)


def test_init_lists_as_json_what_it_has_written(tmp_path: Path) -> None:
    old, new = document({"/pets": get(OLD)}, "1"), document({"/pets": get(NEW)}, "2")
    status, text = init(tmp_path, old, new, options="--json --in header:X-API-Version")
    assert (status, json.loads(text)) == (
        0,
        {
            "file": "gateway.yaml",
            "apis": {
                "pets": {
                    "versions": ["1", "2"],
                    "version": {"in": "header", "name": "X-API-Version"},
                }
            },
            "differences": 1,
            "mistakes": [],
        },
    )


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text("mine")

    status, text = init(tmp_path, document({"/pets": get(OLD)}))

    assert (status, text) == (2, "gateway.yaml: file exists; name another file with --out\n")
    assert (tmp_path / "gateway.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "one", "message"),
    [
        ("", document({}), "1.json: 'paths' has no operation, and the gateway serves no webhooks;"),
        ("", [], "1.json: not an OpenAPI document (no 'openapi'); publish one: 3.0, 3.1 or"),
        (
            "missing.yaml",
            {},
            "missing.yaml: cannot be read: No such file or directory; is the path right?\n",
        ),
        (
            "--in cookie:v",
            document({}),
            "--in cookie:v: requests cannot name the version there; write path, query:NAME,",
        ),
    ],
)
def test_a_document_that_cannot_be_used_is_named_and_nothing_is_written(
    tmp_path: Path, options: str, one: object, message: str
) -> None:
    status, text = init(tmp_path, one, options=options)

    assert status == 2
    assert text.startswith(message)
    assert not (tmp_path / "gateway.yaml").exists()
