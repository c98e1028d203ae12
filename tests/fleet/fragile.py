"""Fragile: an API whose newer version turns bad, so that the gates of its cutover roll it back."""

from threading import Event

from tests.gateway.live.raw import Message, answer

FRAGILE = """\
  fragile:
    upstream_path: "/fragile/v{version}"
    endpoints: [ { path: "/fragile/v{version}", version: { in: path } } ]
    versions:
      "1":
        service: old
        cutover:
          { via: "2", percent: 50, sticky_by: request,
            gates: { errors: 10%, window: 10s, minimum: 20, then: roll_back } }
      "2": { service: new }
    conversions: [ { between: ["1", "2"], changes: [ { rename: { field: a, to: b } } ] } ]
"""
"""The API, of which version 1 alone is called."""


class Fragile:
    """Answers for the services of the API, and of all others.

    Attributes:
        bad: set while version 2 fails.
        rolled_back: set while nothing may ask for version 2.
        wrong: what has asked for it all the same.
    """

    def __init__(self) -> None:
        self.bad, self.rolled_back = Event(), Event()
        self.wrong: list[str] = []

    def answer(self, request: Message) -> bytes:
        """Return the answer to a request."""
        if b" /fragile/v2 " in request.line:
            if self.rolled_back.is_set():
                self.wrong.append("what was rolled back was asked for")
            if self.bad.is_set():
                return answer(b"{}", status="500 Internal Server Error")
        return answer(b'{"name": "Bob Charlie"}')
