"""The end of versions over sockets: announcements, brownouts, retirement, and exempt clients."""

import json
from collections.abc import Awaitable, Callable

import pytest

from tests.gateway.kit import Program, StartUpstream, rules
from tests.gateway.talk import Answer, ask, connect, logged
from tests.gateway.talk import get as fetch

PAGE = "https://example.com/v1-ends"
SOON = f'deprecated: 2020-01-01, sunset: 2099-12-31, link: "{PAGE}", successor: "2"'
OVER = 'deprecated: 2020-01-01, sunset: 2021-01-01, successor: "2"'
EXEMPT = "[{ client: acme, until: 2099-12-31 }, { client: late, until: 2022-01-01 }]"
OPEN = "from: 2020-01-01, to: 2099-12-31"
JSON = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\n" + JSON
FOUR = {
    "path": ("/v{}/person", ()),
    "query": ("/param?version={}", ()),
    "header": ("/header", ("X-API-VERSION: {}",)),
    "accept": ("/accept", ("Accept: application/vnd.t-v{}+json",)),
}
mechanisms = pytest.mark.parametrize("mechanism", FOUR)
Start = Callable[..., Awaitable[Program]]


@pytest.fixture
def old(standing: Program, upstream: StartUpstream) -> Start:
    """Start a gateway with these keys in version 1; the service always sends the same response."""

    async def start(keys: str, answer: bytes = OK, service: str = "service: s, ") -> Program:
        served = await upstream(answer)
        text = rules(served.port).replace("service: s }", f"{service}{keys} }}", 1)
        standing.reload(f"clients: {{ by: [{{ header: X-Client }}] }}\n{text}")
        return standing

    return start


async def get(
    to: Program, mechanism: str, version: str, *fields: str, method: str = "GET"
) -> Answer:
    path, named = FOUR[mechanism]
    named = tuple(field.format(version) for field in named)
    return await fetch(to, f"{method} {path.format(version)}", *named, *fields)


def announced(answer: Answer) -> tuple[list[str], list[str]]:
    return answer.all("deprecation"), answer.all("sunset")


DATES = (["@1577836800"], ["Thu, 31 Dec 2099 00:00:00 GMT"])
LINKS = [f'<{PAGE}>; rel="deprecation"', f'<{PAGE}>; rel="sunset"']


class TestAnnounced:
    """Announcements of the end of a version (RFC 9745, RFC 8594, RFC 5829)."""

    @mechanisms
    async def test_every_response_of_a_deprecated_version_announces_its_end(
        self, mechanism: str, old: Start
    ) -> None:
        program = await old(f"lifecycle: {{ {SOON} }}")
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            answer = await get(program, mechanism, "1", method=method)
            assert announced(answer) == DATES
            assert answer["link"].split(", ")[:2] == LINKS
            for version in ("2", "3"):
                answer = await get(program, mechanism, version, method=method)
                assert announced(answer) == ([], [])

    @pytest.mark.parametrize(
        ("mechanism", "link"),
        [
            ("path", ["</v2/person>"]),
            ("query", ["</param?version=2>"]),
            ("header", ["</header>"]),
            ("accept", ["</accept>"]),
        ],
    )
    async def test_the_successor_is_linked_if_the_version_is_in_the_path(
        self, mechanism: str, link: list[str], old: Start
    ) -> None:
        answer = await get(await old(f"lifecycle: {{ {SOON} }}"), mechanism, "1")
        links = answer["link"].split(", ")
        found = [value for value in links if 'rel="successor-version"' in value]
        assert [value.partition(";")[0] for value in found] == link

    async def test_lifecycle_fields_of_the_gateway_replace_those_of_the_service(
        self, old: Start
    ) -> None:
        theirs = b"Sunset: theirs\r\ndeprecation: theirs\r\nLink: </a>; rel=next\r\n"
        program = await old(f"lifecycle: {{ {SOON} }}", b"HTTP/1.1 200 OK\r\n" + theirs + JSON)
        answer = await get(program, "header", "1")
        assert announced(answer) == DATES
        assert answer.all("link")[0] == "</a>; rel=next"
        assert answer.all("link")[1].split(", ")[:2] == LINKS
        assert announced(await get(program, "header", "2")) == (["theirs"], ["theirs"])

    async def test_an_error_of_the_gateway_announces_the_end_of_the_version(
        self, old: Start
    ) -> None:
        answer = await get(await old(f"lifecycle: {{ {SOON} }}", b"nonsense\r\n"), "header", "1")
        assert answer.status == 502
        assert announced(answer) == DATES

    async def test_an_exempt_client_gets_its_own_sunset_date(self, old: Start) -> None:
        terms = "sunset: 2098-12-31, exempt: [{ client: acme, until: 2099-12-31 }]"
        program = await old(f"lifecycle: {{ {terms} }}")
        for client, sunset in (("acme", "Thu, 31 Dec 2099"), ("x", "Wed, 31 Dec 2098")):
            answer = await get(program, "path", "1", f"X-Client: {client}")
            assert answer["sunset"] == f"{sunset} 00:00:00 GMT"


class TestOver:
    @mechanisms
    @pytest.mark.parametrize("service", ["service: s, ", ""], ids=["served", "not served"])
    async def test_a_version_after_its_sunset_is_410_with_its_successor(
        self, mechanism: str, service: str, old: Start
    ) -> None:
        program = await old(f"lifecycle: {{ {OVER} }}", service=service)
        answer = await get(program, mechanism, "1")
        problem = json.loads(answer.body)
        assert (answer.status, problem["code"]) == (410, "version_retired")
        assert problem["supportedVersions"] == ["2"]
        assert problem["successor"]["version"] == "2"
        assert answer["sunset"] == "Fri, 01 Jan 2021 00:00:00 GMT"
        assert (await get(program, mechanism, "1", method="HEAD")).status == 410
        assert (await get(program, mechanism, "2")).status == 200
        unknown = json.loads((await get(program, mechanism, "3")).body)
        assert (unknown["code"], unknown["supportedVersions"]) == ("version_unknown", ["2"])

    @pytest.mark.parametrize(("client", "status"), [("acme", 200), ("late", 410), ("x", 410)])
    async def test_exempt_clients_use_a_retired_version(
        self, client: str, status: int, old: Start
    ) -> None:
        program = await old(f"lifecycle: {{ {OVER}, exempt: {EXEMPT} }}")
        answer = await get(program, "path", "1", f"X-Client: {client}")
        assert answer.status == status

    async def test_negotiation_skips_a_retired_version(self, old: Start) -> None:
        program = await old(f"lifecycle: {{ {OVER} }}")
        accept = "Accept: application/vnd.t-v1+json, application/vnd.t-v2+json;q=0.5"
        answer = await fetch(program, "GET /accept", accept)
        assert (answer.status, answer["content-type"]) == (200, "application/vnd.t-v2+json")

    async def test_the_log_names_the_retired_version_and_the_client(self, old: Start) -> None:
        program = await old(f"lifecycle: {{ {OVER} }}")
        answer = await get(program, "path", "1", "X-Client: late")
        line = await logged(program, answer["x-request-id"])
        found = [line[key] for key in ("version", "client", "status", "code")]
        assert found == ["1", "late", 410, "version_retired"]

    async def test_a_refused_body_does_not_end_the_connection(self, old: Start) -> None:
        program = await old(f"lifecycle: {{ {OVER} }}")
        async with connect(program) as client:
            client.send(ask("POST /v1/person", "Content-Length: 4", body=b"1234") + ask())
            assert (await client.answer()).status == 410
            assert (await client.answer()).status == 200


class TestBrownout:
    @mechanisms
    async def test_an_open_window_refuses_with_503_and_retry_after(
        self, mechanism: str, old: Start
    ) -> None:
        keys = f"lifecycle: {{ {SOON} }}, brownout: {{ windows: [{{ {OPEN} }}] }}"
        program = await old(keys)
        answer = await get(program, mechanism, "1")
        problem = json.loads(answer.body)
        assert (answer.status, problem["code"]) == (503, "version_brownout")
        assert int(answer["retry-after"]) > 10**9
        assert problem["successor"]["version"] == "2"
        assert announced(answer) == DATES
        assert (await get(program, mechanism, "2")).status == 200

    async def test_a_schedule_refuses_within_its_windows(self, old: Start) -> None:
        """The first schedule covers all times; the second one covers a few minutes in 28 years."""
        for at, status in (("* * * * *", 503), ("15 0 29 2 1#5", 200)):
            keys = f'brownout: {{ windows: [{{ at: "{at}", minutes: 2 }}], zone: Europe/Berlin }}'
            answer = await get(await old(keys), "path", "1")
            assert answer.status == status
            if status == 503:
                assert 960 < int(answer["retry-after"]) <= 2040  # up to 16 further windows

    async def test_a_brownout_may_refuse_with_410(self, old: Start) -> None:
        keys = f"brownout: {{ windows: [{{ {OPEN} }}], status: 410 }}"
        answer = await get(await old(keys), "path", "1")
        assert (answer.status, answer.all("retry-after")) == (410, [])
        assert json.loads(answer.body)["code"] == "version_brownout"

    async def test_a_brownout_percentage_refuses_about_that_share_of_requests(
        self, old: Start
    ) -> None:
        """Half of 100 requests are refused.

        Fewer than 10 or more than 90 occur once in 10^17 runs.
        """
        program = await old("brownout: { percent: 50 }")
        async with connect(program) as client:
            client.send(ask("GET /v1/person") * 100)
            answers = [await client.answer() for _ in range(100)]
        refused = [answer for answer in answers if answer.status == 503]
        assert 10 <= len(refused) <= 90
        assert {answer["retry-after"] for answer in refused} == {"1"}

    async def test_a_brownout_of_zero_percent_refuses_no_request(self, old: Start) -> None:
        assert (await get(await old("brownout: { percent: 0 }"), "path", "1")).status == 200

    async def test_exempt_clients_are_not_refused_in_a_brownout(self, old: Start) -> None:
        exempt = "exempt: [{ client: acme }, { client: late, until: 2022-01-01 }]"
        program = await old(f"brownout: {{ windows: [{{ {OPEN} }}], {exempt} }}")
        for client, status in (("acme", 200), ("late", 503), ("x", 503)):
            assert (await get(program, "path", "1", f"X-Client: {client}")).status == status
