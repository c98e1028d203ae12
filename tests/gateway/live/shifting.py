"""Shared code of shadow and cutover tests: a configuration with two services, the admin port."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.gateway.kit import Program, Script, Scripted
from tests.gateway.talk import Answer, Reader, Writer, get, soon


def rules(api: str, old: int, new: int, first: str = "", *, top: str = "", of_new: str = "") -> str:
    """Return a configuration in which version 1 has its own service, and the keys in `first`."""
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
    """A gateway with an API that no other test uses."""

    program: Program
    api: str

    async def get(self, *fields: str, query: str = "") -> Answer:
        return await get(self.program, f"GET /v1/person{query}", *fields)

    def lead(self, old: int, new: int, first: str = "", **more: str) -> None:
        self.program.reload(rules(self.api, old, new, first, **more))

    def shadow(self) -> Any:
        status, found = admin(self.program, "GET", f"/shadows/{self.api}/1")
        assert status == 200
        return found

    async def found(self, enough: Callable[[Any], bool]) -> Any:
        def look() -> Any:
            now = self.shadow()
            return now if enough(now) else None

        return await soon(look)

    def cutover(self, method: str = "GET", content: object = None) -> Any:
        status, standing = admin(self.program, method, f"/cutovers/{self.api}/1", content)
        assert status == 200, standing
        return standing


def shadow(more: str = "") -> str:
    return f', shadow: {{ via: "2"{more} }}'


def answer(document: object, *fields: str, status: str = "200 OK") -> bytes:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", *fields]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


OLD = answer({"name": "Bob Charlie"})
NEW = answer({"name": {"firstName": "Bob", "lastName": "Charlie"}})
WRONG = answer({"name": {"firstName": "Bob", "lastName": "Marley"}})


def asked(service: Scripted) -> list[bytes]:
    """Return the requests of a service, except those of reports for its OpenAPI document."""
    return [request for request in service.requests if b" /openapi.json " not in request]


def told(say: Callable[[bytes], bytes]) -> Script:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            writer.write(say(await scripted.take(reader)))
            await writer.drain()

    return script


def admin(program: Program, method: str, path: str, content: object = None) -> tuple[int, Any]:
    """Return status and document of an admin response; requests that change state have a reason."""
    path = path if method == "GET" or "?" in path else f"{path}?why=trial"
    connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
    try:
        connection.request(method, path, None if content is None else json.dumps(content))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
