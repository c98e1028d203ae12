"""`check` warns of losses only in the directions that messages take."""

import pytest

from gateway.rules.load import check

OLD_VIA_NEW = '"1": { via: "2" }, "2": { service: s }'
NEW_VIA_OLD = '"1": { service: s }, "2": { via: "1" }'
SEPARATE = '"1": { service: s }, "2": { service: s }'
CUTOVER = '"1": { service: s, cutover: { via: "2", percent: 1 } }, "2": { service: s }'
ALL = "body up, body down, head up, head down"
# The versions, the methods of the endpoint, the other keys of the conversion, and the losses.
SERVED = [
    (OLD_VIA_NEW, "GET, PUT", "", ALL),
    (OLD_VIA_NEW, "GET", "", "body down, head up, head down"),
    (OLD_VIA_NEW, "GET, PUT", "methods: [GET]", "body down, head up, head down"),
    (OLD_VIA_NEW, "GET, PUT", "on: requests", "body up, head up"),
    (OLD_VIA_NEW, "GET, PUT", "on: responses", "body down, head down"),
    (OLD_VIA_NEW, "GET, PUT", "on: errors, statuses: [4xx]", "body down, head down"),
    (OLD_VIA_NEW, "GET, PUT", "operations: [GET /a]", "body down, head up, head down"),
    (OLD_VIA_NEW, "GET", "operations: [PUT /a]", ""),
    (OLD_VIA_NEW, "GET", "methods: [PUT]", ""),
    (OLD_VIA_NEW, "GET, PUT", "paths: [/b]", ""),
    (NEW_VIA_OLD, "GET", "", "body up, head up, head down"),
    (NEW_VIA_OLD, "GET, PUT", "on: requests", "body down, head down"),
    (NEW_VIA_OLD, "GET, PUT", "on: responses", "body up, head up"),
    (CUTOVER, "GET", "", "body down, head up, head down"),
    (SEPARATE, "GET", "", ALL),  # no message is converted yet, so any direction may follow
    (SEPARATE, "GET", "on: responses", ALL),
]
RULES = """
services: { s: { targets: ["http://127.0.0.1:9"] } }
apis:
  shop:
    endpoints:
      - { path: /a, version: { in: query, name: v }, methods: [METHODS] }
      - { path: /b, version: { in: query, name: v }, versions: ["2"], methods: [GET] }
    versions: { VERSIONS }
    conversions:
      - { between: ["1", "2"], KEYS
          changes: [ { default: { field: body, value: 1 } }, { remove: { field: body2 } } ],
          headers: [ { default: { field: head } }, { remove: { field: head2 } } ] }
"""


@pytest.mark.parametrize(("versions", "methods", "keys", "losses"), SERVED)
def test_check_warns_of_losses_in_the_directions_that_messages_take(
    versions: str, methods: str, keys: str, losses: str
) -> None:
    text = RULES.replace("VERSIONS", versions).replace("METHODS", methods)
    text = text.replace("KEYS", f"{keys}," if keys else "")
    _, warnings = check(text.encode(), "gateway.yaml", {})
    found = {
        f"{kind} {direction}"
        for one in warnings
        for kind in ("body", "head")
        for direction, version in (("up", 2), ("down", 1))
        if f"lossy towards version {version}: '{kind}" in one.text
    }
    assert found == set(losses.split(", ")) - {""}


FILTERED = """
services: { s: { targets: ["http://127.0.0.1:9"] } }
apis:
  shop:
    endpoints: [ { path: "/v{version}/a", version: { in: path }, methods: [GET] } ]
    versions: { "1": { via: "2" }, "2": { service: s } }
    conversions:
      - between: ["1", "2"]
        WHERE: [ map: { field: state, values: { OPEN: open, LOST: gone, SOLD: gone }, BACK } ]
"""


@pytest.mark.parametrize(
    ("where", "back", "missed"),
    [
        ("query", "back: { gone: SOLD }", "SOLD, so a filter by it does not find LOST"),
        ("query", "back: { gone: ALL }", "ALL, so a filter by it does not find LOST and SOLD"),
        ("changes", "back: { gone: SOLD }", ""),
    ],
)
def test_check_warns_of_the_values_that_a_filter_of_the_older_version_does_not_find(
    where: str, back: str, missed: str
) -> None:
    text = FILTERED.replace("WHERE", where).replace("BACK", back)
    _, warnings = check(text.encode(), "gateway.yaml", {})
    found = [one.text for one in warnings if "a filter by it" in one.text]
    expected = f"warning: lossy towards version 2: 'state' gone becomes {missed}"
    assert found == ([expected] if missed else [])
