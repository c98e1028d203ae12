"""Dry runs: the mark that has a service try a request and leave everything as it was."""

from typing import NamedTuple
from urllib.parse import quote

from gateway.base.headers import HeaderFields
from gateway.base.query_parameters import parameters

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class DryRun(NamedTuple):
    """The mark of a dry run: a header field or a query parameter of a request to a service.

    The mark replaces whatever the client sent under its name. A client must not be able to turn a
    dry run into a write.

    Attributes:
        name: The name of the header field or the query parameter.
        value: Its value.
        in_query: Whether it is a query parameter; otherwise it is a header field.
        methods: The methods of the requests that the service can try.
        paths: The paths of the endpoints whose requests it can try; None where it can try all.
    """

    name: str
    value: str
    in_query: bool = False
    methods: frozenset[str] = WRITES
    paths: frozenset[str] | None = None

    def applies(self, method: str, path: str) -> bool:
        """Return whether requests of a method at the endpoint of a path can be tried."""
        return method in self.methods and (self.paths is None or path in self.paths)

    def target(self, target: str) -> str:
        """Return the path and query of a request with the mark; other parameters stay as is."""
        if not self.in_query:
            return target
        path, _, query = target.partition("?")
        pairs = parameters(self.name).sub("", query).split("&")
        mark = f"{quote(self.name, safe='')}={quote(self.value, safe='')}"
        return f"{path}?{'&'.join([*filter(None, pairs), mark])}"

    def fields(self, fields: HeaderFields) -> HeaderFields:
        """Return the header fields of a request with the mark; other fields stay as they are."""
        if self.in_query:
            return fields
        name = self.name.encode()
        others = [field for field in fields if field[0].lower() != name.lower()]
        return [*others, (name, self.value.encode())]
