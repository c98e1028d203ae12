"""Operations that conversions declare: their identity, warnings and substitutes."""

from gateway.conversion.version_step import VersionLink
from gateway.routing.snapshot import Api
from gateway.rules.load import check
from tests.gateway.rules.rules import RULES, edited

CONVERSION = """\
- between: ["1", "2"]
        changes:
          - join: { fields: [name.first, name.last], into: name }
"""


def checked(*parts: str) -> tuple[Api, list[str]]:
    written = "".join(f'- between: ["1", "2"]\n        {part}\n      ' for part in parts)
    text = edited(CONVERSION, f"{written}\n", RULES)
    snapshot, warnings = check(text.encode(), "gateway.yaml", {})
    return snapshot.apis[0], [issue.text for issue in warnings]


def links(api: Api) -> list[VersionLink]:
    ((_, found),) = api.links.items()
    return list(found)


def test_an_operation_named_in_several_conversions_is_the_same_object() -> None:
    api, _ = checked(
        'operations: [{ newer: "GET /a/{id}", older: "GET /b?id={id}" }]',
        'operations: ["GET /a/{nr}", GET /c]',
        "operations: [GET /c, POST /c]",
        "changes: []",
    )
    first, second, third, all_of_them = links(api)
    assert first.operations is not None
    assert second.operations is not None
    assert third.operations is not None
    assert first.operations[0] is second.operations[0]
    assert second.operations[1] is third.operations[0]
    same = third.operations[1]
    assert same.newer is same.older
    assert all_of_them.operations is None


def test_the_same_change_for_different_operations_does_not_conflict() -> None:
    checked(
        "operations: [GET /person]\n        changes: [ rename: { field: a, to: b } ]",
        "operations: [PUT /person]\n        changes: [ rename: { field: a, to: b } ]",
    )


def test_an_operation_named_without_its_declared_query_gives_a_warning() -> None:
    declared = 'operations: [ { newer: "GET /person?of={id}", older: "GET /find?id={id}" } ]'
    plain = "operations: [GET /person]\n        changes: []"
    _, warnings = checked(declared, plain)
    assert [text for text in warnings if " is not " in text] == [
        (
            "warning: is not 'GET /person?of={id}', which apis.person.conversions[0].operations[0]"
            " declares; write that operation, or declare 'GET /person' as both versions have it"
        )
    ]
    whole = plain.replace("GET /person", "{ newer: GET /person, older: GET /person }")
    for others in ((declared.replace("?of={id}", "/{id}"), plain), (declared, whole, plain)):
        _, warnings = checked(*others)
        assert not [text for text in warnings if " is not " in text]


UNREACHED = "warning: no endpoint leads to {}; operations have the paths of requests to services"


def test_an_operation_whose_path_no_endpoint_reaches_gives_a_warning() -> None:
    _, warnings = checked("operations: [GET /v1/person, { newer: /person, older: /pers }]")
    assert warnings == [UNREACHED.format(path) for path in ("/v1/person", "/pers")]


def test_an_operation_with_a_fixed_version_in_its_path_gives_a_warning() -> None:
    upstream = 'path: "/v{version}/{rest*}", upstream_path: "/api/v{version}/{rest}"'
    part = """- between: ["1", "2"]
        operations: [{ newer: /api/v2/new, older: /api/v1/old }, GET /api/v2/x, '/api/v{version}/y']
        changes: [ { rename: { field: a, to: b } } ]
      - between: ["1", "2"]
        operations: [GET /api/v2/x, /api/v2/new]
        changes: []
"""
    text = edited('path: "/v{version}/person"', upstream, edited(CONVERSION, part, RULES))
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert [issue.text for issue in warnings] == [
        (
            "warning: /api/v2/x is the path of a single version; write {version} where"
            " /api/v{version}/{rest*} has it"
        )
    ]


def test_a_name_with_a_method_selects_that_method_of_an_operation_for_all_methods() -> None:
    api, _ = checked(
        "operations: [{ newer: '/a/{id}', older: '/b/{id}' }, { newer: POST /c, older: POST /d }]",
        'operations: ["GET /a/{id}"]',
        'operations: ["/a/{id}", /c]',
    )
    first, second, third = (link.operations or () for link in links(api))
    assert [each.older.text for each in second if each.older] == ["GET /b/{id}"]
    assert set(second) < set(first), "what is for all methods is for GET as well"
    assert set(first) < set(third), "a name without a method is of what has one"


def test_an_operation_below_a_moved_path_has_its_older_form_there() -> None:
    api, _ = checked(
        "operations: [{ newer: '/new/{rest*}', older: '/old/{rest*}' },"
        " { newer: GET /new/b, older: GET /b }, { newer: POST /new/c, older: POST /old/c2 },"
        " { newer: GET /d, older: GET /old/e }]",
        'operations: ["GET /new/a/{id}"]',
        "operations: [GET /new/b, POST /new/c]",
        "operations: [GET /new/e]",
        "operations: ['/new/{rest*}']",
    )
    declared, below, own, taken, whole = (link.operations or () for link in links(api))
    assert [each.older.text for each in below if each.older] == ["GET /old/a/{id}"]
    assert set(below) < set(whole), "it is a part of the moved path"
    assert set(own) < set(declared) - set(whole)
    assert [each.older.text for each in taken if each.older] == ["GET /new/e"]


def test_several_older_operations_can_become_one_newer_operation() -> None:
    api, warnings = checked(
        "operations: [{ newer: 'GET /a/{id}', older: 'GET /b/{id}' },"
        " { newer: 'GET /a/{id}', older: 'GET /b/{id}.csv' }]",
        "operations: ['GET /a/{id}']",
        "operations: ['/a/{id}']",
        "operations: [{ newer: 'GET /a/{id}', older: 'GET /find?id={id}' }]",
    )
    assert not [text for text in warnings if "no endpoint" not in text]
    declared, by_method, by_path, alone = (link.operations or () for link in links(api))
    assert by_method == (*declared, *alone)
    assert set(by_method) < set(by_path)
    assert len(alone) == 1


def test_statuses_of_conversions_and_operations_are_compiled_separately() -> None:
    api, warnings = checked(
        "status: [{ newer: 409, older: 400 }, { newer: 422, older: 400 }]",
        "operations: [{ newer: GET /person, older: PUT /person,"
        " status: { newer: 201, older: 200 } }]",
    )
    entry, operation = links(api)
    assert entry.status == {409: 400, 422: 400}
    assert operation.status == {}
    assert operation.operations is not None
    assert operation.operations[0].statuses == {201: 200}
    (warning,) = warnings
    assert warning == (
        "warning: lossy towards version 2: status 400 becomes 409, whichever of 409, 422 it was"
    )


def test_a_refused_method_at_a_path_mapped_for_all_methods_gives_a_warning() -> None:
    """Clients request links with GET, so that a link would match the refused operation."""
    mapped = "operations: [{{ newer: /person, older: /pers }}, {{ newer: {}, refuse: {{}} }}]"
    _, warnings = checked(mapped.format("GET /person"))
    assert [text for text in warnings if "links to" in text] == [
        (
            "warning: links to /person do not become those of the older version by"
            " apis.person.conversions[0].operations[0], as GET is refused here; leave GET out"
        )
    ]
    for other in ("/person", "GET /persons"):
        _, warnings = checked(mapped.format(other))
        assert not [text for text in warnings if "links to" in text]


def test_an_operation_that_one_version_lacks_has_a_service_or_a_refusal() -> None:
    api, _ = checked(
        "operations: [{ older: GET /person, service: old },"
        " { newer: PUT /person, refuse: { status: 410 } }]"
    )
    (link,) = links(api)
    assert link.operations is not None
    first, second = (operation.substitute for operation in link.operations)
    assert first is not None
    assert first.service is not None
    assert first.service.name == "old"
    assert second is not None
    assert (second.service, second.status, second.detail) == (None, 410, "")
