"""Fragile: an API whose newer version starts to fail, so its gates roll the cutover back."""

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
"""The API; requests are only for version 1."""


class Fragile:
    """Responds for the services of the API, and for all other services.

    Attributes:
        bad: set while version 2 fails.
        rolled_back: set while version 2 must not get requests.
        wrong: the requests that version 2 got nevertheless.
    """

    def __init__(self) -> None:
        self.bad, self.rolled_back = Event(), Event()
        self.wrong: list[str] = []

    def answer(self, request: Message) -> bytes:
        if b" /fragile/v2 " in request.line:
            if self.rolled_back.is_set():
                self.wrong.append("what was rolled back was asked for")
            if self.bad.is_set():
                return answer(b"{}", status="500 Internal Server Error")
        return answer(b'{"name": "Bob Charlie"}')
