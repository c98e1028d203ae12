"""RouteEngine: HTTPRoutes of the Gateway API, run over real sockets by the letter of its text.

Only what an implementation must do is done (HTTPRouteMatch, HTTPRouteRule and HTTPRouteFilter of
v1), and nothing that it may do beside it, but for one thing: most compare a path once it is in
normal form. Both are played.
"""

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

Rule = Mapping[str, Any]
Fields = list[tuple[str, str]]
_DEADLINE = 60.0
_CODED = re.compile(r"%[0-9A-Fa-f]{2}")


class Ranked(NamedTuple):
    """A match of a rule, which sorts before those over which it takes precedence."""

    prefix: bool
    shorter: int
    any_method: bool
    fewer_fields: int
    fewer_parameters: int
    route: str
    number: int

    @classmethod
    def of(cls, match: Mapping[str, Any], route: str, number: int) -> "Ranked":
        """Return a match of a rule of a route; all routes are of the same age."""
        path = match["path"]
        return cls(
            path["type"] != "Exact",
            -len(path["value"]),
            "method" not in match,
            -len(match.get("headers", ())),
            -len(match.get("queryParams", ())),
            route,
            number,
        )


def ranked(routes: list[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Rule]]:
    """Return the matches of all routes with their rules, in the order of precedence."""
    found = [
        (Ranked.of(match, route["metadata"]["name"], number), match, rule)
        for route in routes
        for number, rule in enumerate(route["spec"]["rules"])
        for match in rule["matches"]
    ]
    return [(match, rule) for _, match, rule in sorted(found, key=lambda each: each[0])]


def matches(match: Mapping[str, Any], method: str, path: str) -> bool:
    """Return whether a request is matched; a match by fields is none that is known here."""
    assert match.keys() <= {"path", "method"}
    kind, value = match["path"]["type"], match["path"]["value"]
    if match.get("method", method) != method:
        return False
    if kind == "Exact":
        return bool(path == value)
    assert kind == "PathPrefix"  # by whole segments
    return f"{path}/".startswith(f"{value.rstrip('/')}/")


def normal(path: str) -> str:
    """Return a path in normal form (RFC 3986, section 6.2.2), with slashes merged."""

    def decoded(found: re.Match[str]) -> str:
        plain = unquote(found[0], "latin-1")
        return plain if quote(plain, safe="") == plain else found[0].upper()

    *folders, last = re.sub("/+", "/", _CODED.sub(decoded, path)).split("/")[1:]
    out = list[str]()
    for segment in (*folders, last):
        if segment == "..":
            del out[-1:]
        elif segment != ".":
            out.append(segment)
    ends = last in (".", "..") and out
    return "/" + "/".join(out) + ("/" if ends else "")


class RouteEngine:
    """Serves routes.

    Args:
        routes: the HTTPRoutes, as documents.
        ports: the ports of the Services on this machine, by their names.
        form: returns the path that is compared, and sent on, for the path of a request.
    """

    def __init__(
        self, routes: list[Mapping[str, Any]], ports: Mapping[str, int], form: Callable[[str], str]
    ) -> None:
        self._rules = ranked(routes)
        self._ports = ports
        self._form = form

    @contextmanager
    def listening(self) -> Iterator[int]:
        """Yield the port on which it listens."""
        engine = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    self.wfile.write(engine.answer(self.rfile.readline(), *self.rest()))

            def rest(self) -> tuple[Fields, bytes]:
                fields = Fields()
                while line := self.rfile.readline().rstrip(b"\r\n"):
                    name, _, value = line.decode("latin-1").partition(":")
                    fields.append((name, value.strip(" \t")))
                length = next((value for name, value in fields if name == "Content-Length"), "0")
                return fields, self.rfile.read(int(length))

        class Server(ThreadingTCPServer):
            daemon_threads = True

        with Server(("127.0.0.1", 0), Handler) as server:
            thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
            thread.start()
            try:
                yield int(server.server_address[1])
            finally:
                server.shutdown()
                thread.join()

    def answer(self, line: bytes, fields: Fields, body: bytes) -> bytes:
        """Return the answer to a request, whose client has it as its last one."""
        method, target, protocol = line.decode("latin-1").split()
        path, mark, query = target.partition("?")
        path = self._form(path)
        rule = next(rule for match, rule in self._rules if matches(match, method, path))
        filters = {each["type"]: each for each in rule.get("filters", ())}
        if rewrite := filters.pop("URLRewrite", None):
            path = rewrite["urlRewrite"]["path"]["replaceFullPath"]
        asked = filters.pop("RequestHeaderModifier", {}).get("requestHeaderModifier", {})
        given = filters.pop("ResponseHeaderModifier", {}).get("responseHeaderModifier", {})
        assert not filters, f"unknown filters: {', '.join(filters)}"
        service = rule["backendRefs"][0]["name"]
        head = f"{method} {path}{mark}{query} {protocol}"
        answer = self._ask(service, _message(head, modified(fields, asked), body))
        status, *lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        found = [
            (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
        ]
        return _message(status, modified(found, given), answer.partition(b"\r\n\r\n")[2])

    def _ask(self, service: str, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._ports[service]), _DEADLINE) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))


def modified(fields: Fields, change: Mapping[str, Any]) -> Fields:
    """Return header fields as an HTTPHeaderFilter leaves them."""
    assert change.keys() <= {"set", "add", "remove"}
    replaced, added = (
        [(each["name"], each["value"]) for each in change.get(how, ())] for how in ("set", "add")
    )
    former = {name.lower() for name, _ in replaced} | {*map(str.lower, change.get("remove", ()))}
    return (
        [(name, value) for name, value in fields if name.lower() not in former] + replaced + added
    )


def _message(line: str, fields: Fields, body: bytes) -> bytes:
    lines = [line, *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
