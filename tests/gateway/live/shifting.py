"""What the tests of shadows and cutovers share: rules with two services, and the admin port."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.gateway.kit import Program, Script, Scripted
from tests.gateway.talk import Answer, Reader, Writer, get, soon


def rules(api: str, old: int, new: int, first: str = "", *, top: str = "", of_new: str = "") -> str:
    """Rules in which version 1 has a service of its own, and `first` beside it."""
    return f"""
{top}
clients: {{ by: [ {{ header: X-Client }} ] }}
services:
  old: {{ targets: ["http://127.0.0.1:{old}"] }}
  new: {{ targets: ["http://127.0.0.1:{new}"]{of_new} }}
apis:
  {api}:
    upstream_path: /person
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: old{first} }}
      "2": {{ service: new }}
    conversions:
      - between: ["1", "2"]
        changes:
          - join: {{ fields: [name.firstName, name.lastName], into: name }}
"""


@dataclass(frozen=True)
class Lane:
    """A gateway that by now serves an API that no other test asks for."""

    program: Program
    api: str

    async def get(self, *fields: str, query: str = "") -> Answer:
        """Ask for version 1."""
        return await get(self.program, f"GET /v1/person{query}", *fields)

    def lead(self, old: int, new: int, first: str = "", **more: str) -> None:
        """Have the gateway go by other rules."""
        self.program.reload(rules(self.api, old, new, first, **more))

    def shadow(self) -> Any:
        """Return what the shadow of version 1 has found."""
        status, found = admin(self.program, "GET", f"/shadows/{self.api}/1")
        assert status == 200
        return found

    async def found(self, enough: Callable[[Any], bool]) -> Any:
        """Return what the shadow of version 1 has found, once that is enough."""

        def look() -> Any:
            now = self.shadow()
            return now if enough(now) else None

        return await soon(look)

    def cutover(self, method: str = "GET", content: object = None) -> Any:
        """Return how the cutover of version 1 stands."""
        status, standing = admin(self.program, method, f"/cutovers/{self.api}/1", content)
        assert status == 200, standing
        return standing


def shadow(more: str = "") -> str:
    """A shadow of everything, for `rules`."""
    return f', shadow: {{ via: "2"{more} }}'


def answer(document: object, *fields: str, status: str = "200 OK") -> bytes:
    """Return the bytes of a JSON answer."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", *fields]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


OLD = answer({"name": "Bob Charlie"})
NEW = answer({"name": {"firstName": "Bob", "lastName": "Charlie"}})
WRONG = answer({"name": {"firstName": "Bob", "lastName": "Marley"}})


def asked(service: Scripted) -> list[bytes]:
    """Return what a service was asked, except for its OpenAPI document, which reports look at."""
    return [request for request in service.requests if b" /openapi.json " not in request]


def told(say: Callable[[bytes], bytes]) -> Script:
    """Return the script of a service that says something to each request."""

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            writer.write(say(await scripted.take(reader)))
            await writer.drain()

    return script


def admin(program: Program, method: str, path: str, content: object = None) -> tuple[int, Any]:
    """Return status and document that the admin port answers; an act has a reason."""
    path = path if method == "GET" or "?" in path else f"{path}?why=trial"
    connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
    try:
        connection.request(method, path, None if content is None else json.dumps(content))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
