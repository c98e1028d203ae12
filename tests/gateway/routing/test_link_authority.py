"""For browsers, a mapped link leads to the same host as the original link of the service."""

from random import Random

import pytest

from gateway.routing.links import LinkMapper
from gateway.routing.plan import Plan, plan
from gateway.rules.load import load
from tests.gateway.world import head

RULES = """
services: { s: { targets: ["http://10.0.0.9"] } }
apis:
  files: { service: s, endpoints: [ { path: "/{rest*}", upstream_path: "/base/{rest*}" } ] }
  versions:
    upstream_path: "/api/{rest*}"
    endpoints: [ { path: "/v{version}/{rest*}", version: { in: path } } ]
    versions:
      "1": { via: "3", links: absolute }
      "2": { via: "3", links: relative }
      "3": { service: s }
    conversions: [ { between: ["1", "2"], changes: [] }, { between: ["2", "3"], changes: [] } ]
"""
SNAPSHOT = load(RULES.encode(), "links.yaml", {})
TARGETS = ("/a", "/v1/a", "/v2/a", "/v3/a")


def mapper(target: str) -> LinkMapper:
    planned, found = plan(SNAPSHOT, head(target)), SNAPSHOT.router.find(target)
    assert isinstance(planned, Plan)
    assert found is not None
    origin = "api.test", "http", "api.test"
    links, asked = SNAPSHOT.links, planned.target
    way = planned.endpoint, planned.route, planned.chosen_by
    return LinkMapper(links, *way, found[1], target, asked, *origin)


def host(link: str) -> str | None:
    """Return the host to which a browser on an HTTP page resolves a link; None for the page's host.

    The function follows the states of https://url.spec.whatwg.org/#concept-basic-url-parser.
    """
    strip = "".join(chr(code) for code in range(33))
    rest = "".join(sign for sign in link.strip(strip) if sign not in "\t\n\r")
    scheme, colon, after = rest.partition(":")
    if colon and scheme[:1].isalpha() and scheme.isascii() and scheme.isalnum():
        if scheme.lower() != "http":
            return f"{scheme}:{after}"
        rest = after
    slashes = len(rest) - len(rest.lstrip("/\\"))
    if slashes < 2:
        return None
    for end in "/\\?#":
        rest = rest.lstrip("/\\").partition(end)[0] if end in "?#" else rest
    return rest.replace("\\", "/").partition("/")[0].rpartition("@")[2].lower()


@pytest.mark.parametrize(
    ("target", "link", "wanted"),
    [
        ("/a", "/base/\\evil.test/x", "/./\\evil.test/x"),
        ("/a", "/base/\t/evil.test/x", "/./\t/evil.test/x"),
        ("/a", "/base/\r\n\\evil.test/x", "/./\r\n\\evil.test/x"),
        ("/a", "/base/./\\evil.test/x", "/./\\evil.test/x"),
        ("/a", "http://10.0.0.9/base/\\evil.test/x", "http://api.test/\\evil.test/x"),
        ("/v2/a", "http://api.test/\\evil.test", "/./\\evil.test"),
        ("/v1/a", "/base/\\evil.test/x", "http://api.test/\\evil.test/x"),
        ("/a", "/base//evil.test/x", "/base//evil.test/x"),
        # A link that leads to another host, or that browsers parse differently, is unchanged.
        ("/a", "//evil.test/base/x", "//evil.test/base/x"),
        ("/a", "\\\\evil.test/base/x", "\\\\evil.test/base/x"),
        ("/v1/a", "/\\evil.test/x", "/\\evil.test/x"),
        ("/a", " //evil.test/base/x", " //evil.test/base/x"),
        ("/a", "/\t/evil.test", "/\t/evil.test"),
        ("/a", "///evil.test/base/x", "///evil.test/base/x"),
        ("/a", "h\tttp://evil.test/base/x", "h\tttp://evil.test/base/x"),
        ("/a", "http:\\\\evil.test/base/x", "http:\\\\evil.test/base/x"),
        ("/a", "http://10.0.0.9\\evil.test/base/x", "http://10.0.0.9\\evil.test/base/x"),
    ],
)
def test_browsers_do_not_read_a_host_in_a_mapped_path(target: str, link: str, wanted: str) -> None:
    assert mapper(target).to_client(link).text == wanted


def test_browsers_read_the_same_host_in_random_mapped_links() -> None:
    draw = Random(1)
    begins = ("", "/base", "/base/", "/api/", "http://10.0.0.9", "//10.0.0.9/base", "http:", "/")
    parts = (*"/\\/\\\t\n\r\0 .?#:@", "..", "evil.test", "base", "%2F", "http:", "10.0.0.9", "é")
    own = {None, "10.0.0.9", "10.0.0.9:", "api.test"}
    mappers = [mapper(target) for target in TARGETS]
    mapped = 0
    for _ in range(4000):
        link = draw.choice(begins) + "".join(draw.choices(parts, k=draw.randrange(6)))
        for one in mappers:
            for text in (one.to_client(link).text, one.to_service(link).text):
                mapped += text != link
                wanted = own if host(link) in own else {host(link)}
                assert host(text) in wanted, (link, text)
    assert mapped > 4000
