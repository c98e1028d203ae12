"""One small request, the same for whoever sends it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request.

    Attributes:
        target: path and query.
        fields: header fields, by name.
    """

    target: str
    fields: tuple[tuple[str, str], ...] = ()

    def to(self, port: int) -> bytes:
        """Return the request as it is sent to a port of 127.0.0.1."""
        lines = [f"GET {self.target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += (f"{name}: {value}" for name, value in self.fields)
        return "\r\n".join([*lines, "", ""]).encode()
