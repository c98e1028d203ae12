"""Authentication on the admin port: who may read and operate, and limits on wrong tokens."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar, TCPConnector
from aiohttp.test_utils import TestServer, make_mocked_request

from gateway.access.admin import AdminAccess, Right, TokenHolder, token_digest
from gateway.admin.access import authentication
from gateway.admin.access.authentication import Authentication
from gateway.admin.access.rights import AccessDeniedError
from gateway.admin.access.sessions import FORM_COOKIE
from gateway.findings.operator import Operator
from gateway.observe import log
from tests.gateway.operating import MakeOperator, admin_of

ANN, MONITOR = "ann-0123456789abcdef", "monitor-0123456789abcdef"
TOKENS = f"""\
admin:
  tokens:
    ann: {{ right: operate, token: {ANN} }}
    monitor: {{ right: read, token: {MONITOR} }}
"""
# A client address other than the default 127.0.0.1.
ELSEWHERE = "127.0.0.2"
SIGN_ON = f"""\
admin:
  sign_on:
    proxies: [{ELSEWHERE}/32]
    operators: [platform]
    readers: [support]
"""
PAUSE = "/brownouts/person/2"
WHY = {"why": "trial"}
Fields = Mapping[str, str]


class Asking:
    def __init__(self, operator: Operator, session: ClientSession, url: str) -> None:
        self.operator = operator
        self.session = session
        self.url = url

    async def status(self, method: str, path: str, fields: Fields, **more: Any) -> int:
        async with self.session.request(
            method, f"{self.url}{path}", headers=fields, allow_redirects=False, **more
        ) as answer:
            self.fields = answer.headers
            self.text = await answer.text()
            return answer.status

    async def act(self, fields: Fields) -> int:
        status = await self.status("PUT", PAUSE, fields, params=WHY)
        assert (await self.operator.state.audit() != []) is (status == 200)
        return status

    @property
    async def who(self) -> str:
        return (await self.operator.state.audit())[-1].who


@asynccontextmanager
async def asked(operator: Operator, address: str = "127.0.0.1") -> AsyncIterator[Asking]:
    async with (
        TestServer(admin_of(operator)) as server,
        ClientSession(
            connector=TCPConnector(local_addr=(address, 0)), cookie_jar=CookieJar(unsafe=True)
        ) as session,
    ):
        yield Asking(operator, session, str(server.make_url("")))


async def test_a_request_without_the_needed_right_is_refused_before_its_body_is_read(
    operating: MakeOperator,
) -> None:
    async with asked(operating(TOKENS)) as asking:
        port = int(asking.url.rsplit(":", 1)[1].strip("/"))
        for line, field, expected in [
            ("PUT /brownouts/person/2", "X: y", b"401"),
            ("PUT /brownouts/person/2", f"Authorization: Bearer {MONITOR}", b"403"),
            ("POST /page/rules", "X: y", b"401"),
            ("POST /page/rules", "Origin: http://evil.example", b"403"),
        ]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{field}\r\nContent-Length: 1000000"
            writer.write(f"{head}\r\n\r\nhalf".encode())
            async with asyncio.timeout(5):  # half the time limit for a body
                assert (await reader.readline()).split()[1] == expected
            writer.close()


def bearer(token: str) -> Fields:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 200),
        ({"X-Operator": "ann"}, 200),
        ({"Origin": "{url}"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 403),
        ({"X-Forwarded-For": "192.0.2.1"}, 403),
        ({"Forwarded": "for=192.0.2.1"}, 403),
        ({"Via": "1.1 proxy"}, 403),
    ],
)
async def test_without_configured_tokens_commands_may_operate_and_browsers_may_only_read(
    operator: Operator, sent: Fields, status: int
) -> None:
    async with asked(operator) as asking:
        fields = {name: value.format(url=asking.url) for name, value in sent.items()}
        assert await asking.status("GET", "/overrides", fields) == 200
        assert await asking.act(fields) == status
        if status == 200:
            assert await asking.who == ("unverified:ann" if sent else "(unnamed)")
        else:
            assert "add one to 'admin' in the configuration" in asking.text


@pytest.mark.parametrize(
    ("fields", "read", "operate"),
    [
        ({}, 401, 401),
        (bearer(ANN), 200, 200),
        (bearer(MONITOR), 200, 403),
        ({"Authorization": f"bearer {ANN}"}, 200, 200),
        (bearer(ANN[:-1]), 401, 401),
        (bearer(""), 401, 401),
        ({"Authorization": f"Basic {ANN}"}, 401, 401),
        ({"Authorization": ANN}, 401, 401),
        ({"X-Forwarded-User": "ann"}, 401, 401),
        ({"X-Operator": "ann"}, 401, 401),
        ({**bearer(ANN), "X-Operator": "ben"}, 200, 200),
        ({**bearer(ANN), "Origin": "http://evil.example"}, 403, 403),
        ({**bearer(ANN), "Host": "evil.example"}, 421, 421),
    ],
)
async def test_a_request_has_the_rights_of_its_bearer_token(
    operating: MakeOperator, fields: Fields, read: int, operate: int
) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await asking.status("GET", "/healthz", {}) == 200
        assert await asking.status("GET", "/metrics", fields) == read
        assert await asking.act(fields) == operate
        if operate == 200:
            assert await asking.who == "ann"
        if operate == 401:
            challenge = asking.fields["WWW-Authenticate"]
            assert challenge.startswith('Bearer realm="')
            assert ("invalid_token" in challenge) is ("Authorization" in fields)
        counted = asking.operator.totals.counted("admin_refusals")
        assert sum(each.count for _, each in counted) == (read != 200) + (operate != 200)


@pytest.mark.parametrize("query", ["", "?why=", "?why=%00%07"])
async def test_an_action_without_a_reason_is_refused(operating: MakeOperator, query: str) -> None:
    operator = operating(TOKENS)
    async with asked(operator) as asking:
        assert await asking.status("PUT", PAUSE + query, bearer(ANN)) == 400
        assert '"reason_missing"' in asking.text
        assert await operator.state.audit() == []
        assert not operator.state.in_force.paused


async def test_without_configured_tokens_a_command_may_omit_the_reason(operator: Operator) -> None:
    async with asked(operator) as asking:
        assert await asking.status("PUT", PAUSE, {}) == 200
        (entry,) = await operator.state.audit()
        assert entry.why == ""


async def test_unknown_paths_and_methods_are_refused_without_asking_for_a_token(
    operating: MakeOperator,
) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await asking.status("GET", "/none", {}) == 404
        assert await asking.status("POST", "/usage", {}) == 405


@pytest.mark.parametrize(
    ("groups", "read", "operate"),
    [("platform", 200, 200), ("support, guests", 200, 403), ("guests", 403, 403), ("", 403, 403)],
)
async def test_a_user_of_the_sign_on_has_the_rights_of_the_groups(
    operating: MakeOperator, groups: str, read: int, operate: int
) -> None:
    async with asked(operating(SIGN_ON), ELSEWHERE) as asking:
        form = {"Cookie": f"{FORM_COOKIE}=f0", "X-Form-Token": "f0"}
        user = {"X-Forwarded-User": "ann@example.com", "X-Forwarded-Groups": groups, **form}
        assert await asking.status("GET", "/overrides", user) == read
        assert await asking.act(user) == operate
        if operate == 200:
            assert await asking.who == "ann@example.com"
        else:
            assert (
                "only groups listed in 'admin.sign_on.operators' in the configuration have it"
                in asking.text
            )
        if read == 403:
            await asking.status("GET", "/overrides", user)
            assert (
                "only groups listed in 'admin.sign_on.readers' in the configuration have it"
                in asking.text
            )


async def test_a_user_name_is_accepted_only_from_the_trusted_proxy(operating: MakeOperator) -> None:
    operator = operating(SIGN_ON)
    user = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "platform"}
    async with asked(operator) as asking:
        assert await asking.status("GET", "/overrides", user) == 401
    async with asked(operator, ELSEWHERE) as asking:
        assert await asking.status("GET", "/overrides", {}) == 401
        assert await asking.status("GET", "/overrides", {"X-Forwarded-User": " "}) == 401
        async with asking.session.get(
            f"{asking.url}/overrides",
            headers=[("X-Forwarded-User", "ann"), ("X-Forwarded-User", "eve")],
        ) as answer:
            assert answer.status == 401


async def test_a_form_without_the_form_token_is_refused(operating: MakeOperator) -> None:
    operator = operating(SIGN_ON)
    user = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "platform"}
    async with asked(operator, ELSEWHERE) as asking:
        for cookie, sent in (("", ""), ("", "f0"), ("f0", ""), ("f0", "f1"), ("f0", "\xe9")):
            fields = {**user, "Cookie": f"{FORM_COOKIE}={cookie}", "X-Form-Token": sent}
            assert await asking.act(fields) == 403
            assert '"form_unknown"' in asking.text
        fields = {**user, "Cookie": f"{FORM_COOKIE}=f0"}
        body = {"form_token": "f0", "why": "a form"}
        assert await asking.status("PUT", PAUSE, fields, data=body) == 200
        assert (await operator.state.audit())[-1].why == "a form"


async def test_an_address_with_too_many_wrong_tokens_can_still_use_the_right_token(
    operating: MakeOperator,
) -> None:
    async with asked(operating(TOKENS)) as asking:
        for _ in range(20):
            assert await asking.status("GET", "/overrides", bearer("wrong")) == 401
        assert await asking.status("GET", "/overrides", bearer(ANN)) == 200
        assert await asking.status("GET", "/overrides", bearer(f"{ANN}x")) == 429
        assert re.fullmatch("[1-3]", asking.fields["Retry-After"])
        counted = dict(asking.operator.totals.counted("admin_refusals"))
        assert {code: each.count for (code,), each in counted.items()} == {
            "unauthorized": 20,
            "too_many_tries": 1,
        }


async def test_a_browser_without_a_session_gets_the_login_page(operating: MakeOperator) -> None:
    async with asked(operating(TOKENS)) as asking:
        html = {"Accept": "text/html,*/*"}
        assert await asking.status("GET", "/usage?api=%3Cb%3E", html) == 401
        assert 'name="next" value="/usage?api=%3Cb%3E"' in asking.text
        assert await asking.status("GET", "/usage", {}) == 401
        assert '"unauthorized"' in asking.text


class Limited:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.events: list[dict[str, Any]] = []
        rules = AdminAccess((TokenHolder("ann", token_digest(ANN), Right.OPERATE),))
        self.authentication = Authentication(lambda: rules, lambda: self.now)
        monkeypatch.setattr(log, "event", self._event)

    def _event(self, name: str, _: str, **fields: Any) -> None:
        self.events.append({"name": name, **fields})

    def wait(self, address: str, now: float) -> int:
        """Send a wrong token; return the seconds in Retry-After, or 0 without one."""
        self.now = now
        request = make_mocked_request("GET", "/usage", {"Authorization": "Bearer wrong"})
        with pytest.raises(AccessDeniedError) as denied:
            self.authentication.identify(request.clone(remote=address))
        return int(denied.value.fields.get("Retry-After", 0))


def test_an_address_may_send_twenty_wrong_tokens_and_one_more_every_three_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited = Limited(monkeypatch)
    assert [limited.wait("a", 100.0) for _ in range(21)] == [0] * 20 + [3]
    assert [limited.wait(*each) for each in (("a", 101.5), ("b", 100.0))] == [2, 0]
    assert [limited.wait("a", now) for now in (103.0, 103.0, 106.0, 109.0)] == [0, 3, 0, 0]
    assert [limited.wait("a", 200.0) for _ in range(21)] == [0] * 20 + [3]
    starts = [each for each in limited.events if each["name"] == "admin_tries_limited"]
    assert [each["peer"] for each in starts] == ["a", "a"]
    assert [each["unlogged"] for each in limited.events if "unlogged" in each] == [2, 1]


def test_new_addresses_beyond_the_bound_share_their_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authentication, "_MOST_ADDRESSES", 10)
    limited = Limited(monkeypatch)
    assert not any(limited.wait(f"192.0.2.{number}", 0.0) for number in range(10))
    assert [limited.wait(f"new {number}", 1.0) for number in range(22)] == [0] * 20 + [3, 3]
    assert limited.events[-1] == {"name": "admin_tries_limited", "peer": "other addresses"}
    assert limited.wait("192.0.2.0", 1.0) == 0
    assert limited.wait("new 22", 3.0) == 0  # all attempts of nine addresses are available again


@pytest.mark.parametrize(
    ("address", "other", "shared"),
    [
        ("2001:db8::1", "2001:db8::ffff:0:0:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_addresses_in_the_same_ipv6_network_share_their_attempts(
    address: str, other: str, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = Limited(monkeypatch)
    assert not any(limited.wait(address, 0.0) for _ in range(20))
    assert bool(limited.wait(other, 0.0)) is shared
