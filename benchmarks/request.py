"""A small request, which all load generators send."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request.

    Attributes:
        target: path and query.
        fields: pairs of the name and the value of a header field.
    """

    target: str
    fields: tuple[tuple[str, str], ...] = ()

    def to(self, port: int) -> bytes:
        """Return the bytes of the request to a port of 127.0.0.1."""
        lines = [f"GET {self.target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += (f"{name}: {value}" for name, value in self.fields)
        return "\r\n".join([*lines, "", ""]).encode()
