"""Helpers of the tests without I/O: request heads and a small compiled configuration."""

import re
from collections.abc import Sequence

import yaml
from hypothesis import settings
from multidict import CIMultiDict

from gateway.base.mistakes import Mistakes
from gateway.base.path_templates import Router, parse_template
from gateway.base.request import RequestHead
from gateway.http.upstream.service import Service, Target
from gateway.routing.snapshot import Endpoint, Route, Snapshot
from gateway.versions.mechanisms import MECHANISMS
from gateway.versions.mechanisms.accept import AcceptReader
from gateway.versions.mechanisms.content_type import ContentTypeReader
from gateway.versions.mechanisms.header import HeaderReader
from gateway.versions.mechanisms.host import HostReader
from gateway.versions.mechanisms.path import PathReader
from gateway.versions.mechanisms.query import QueryReader
from gateway.versions.reader import Reader
from gateway.versions.selection import Selector
from gateway.versions.version import Version
from tests.gateway.kit import ROOT

# Laws are checked with the same examples everywhere, so failures depend only on the code.
LAW = settings(derandomize=True, max_examples=60)

V1, V2 = Version(1, "1"), Version(2, "2")
SUPPORTED = {"1": V1, "2": V2}

PATH = PathReader()
QUERY = QueryReader("version")
HEADER = HeaderReader("X-API-VERSION")
HOST = HostReader("v", ".api.example.com")
ACCEPT = AcceptReader("application/vnd.comp.app-v", "+json", names_response=True)
CONTENT_TYPE = ContentTypeReader("application/vnd.comp.app-v", "+json")
VENDOR = "application/vnd.comp.app-v{}+json"


def _example_readers() -> dict[str, Reader]:
    """Return the reader of each mechanism, from its first example in docs/selection.md."""
    page = (ROOT / "docs" / "selection.md").read_text()
    readers: dict[str, Reader] = {}
    for written in re.findall(r"^\| [^|]+ \| `(\{ in: .*?\})`", page, re.MULTILINE):
        declared = yaml.safe_load(re.sub(r": ([^\s\"]*\{version\}\S*) \}", r": '\1' }", written))
        model, mistakes = MECHANISMS[declared["in"]].model_validate(declared), Mistakes()
        reader = model.compile(SUPPORTED, mistakes)
        assert reader is not None
        assert not mistakes.found
        readers.setdefault(reader.mechanism, reader)
    return readers


EXAMPLE_READERS = _example_readers()

PERSON_V1 = Service("person_v1", (Target("127.0.0.1", 8001),))
PERSON_V2 = Service("person_v2", (Target("127.0.0.1", 8002),))
USERS = Service("users", (Target("127.0.0.1", 8003),))


def head(target: str, *fields: tuple[str, str], method: str = "GET") -> RequestHead:
    path, mark, query = target.partition("?")
    return RequestHead(method, path, query if mark else None, CIMultiDict(fields))


def person(
    path: str,
    *readers: Reader,
    default: Version | None = None,
    methods: tuple[str, ...] | None = ("GET", "HEAD"),
    vary: tuple[str, ...] = (),
) -> Endpoint:
    upstream = parse_template("/person")
    routes: dict[Version | None, Route] = {
        V1: Route(V1, V1, PERSON_V1, upstream),
        V2: Route(V2, V2, PERSON_V2, upstream),
    }
    selector = Selector(readers, SUPPORTED, default)
    return Endpoint("person", parse_template(path), methods, selector, routes, vary)


def users(path: str, methods: tuple[str, ...] | None = None) -> Endpoint:
    routes: dict[Version | None, Route] = {None: Route(None, None, USERS)}
    return Endpoint("users", parse_template(path), methods, None, routes, ())


def snapshot(endpoints: Sequence[Endpoint]) -> Snapshot:
    services = {service.name: service for service in (PERSON_V1, PERSON_V2, USERS)}
    return Snapshot(Router((endpoint.template, endpoint) for endpoint in endpoints), services)
