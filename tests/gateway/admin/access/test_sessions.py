"""Browser sessions: login, actions and logout; forged sessions and forms are refused."""

import asyncio
import re

import pytest

from gateway.access.admin import Right, TokenHolder, token_digest
from gateway.admin.access.sessions import SECONDS, SESSION, new_session, session_holder
from tests.gateway.admin.access.test_authentication import ANN, MONITOR, TOKENS, Asking, asked
from tests.gateway.operating import MakeOperator

HOLDER = TokenHolder("ann.b", token_digest("a" * 16), Right.OPERATE)
OTHER = TokenHolder("ben", token_digest("b" * 16), Right.READ)
NOW = 1_800_000_000.5


async def form(asking: Asking) -> str:
    assert await asking.status("GET", "/login?next=/usage", {}) == 200
    found = re.search('name="form_token" value="([^"]+)"', asking.text)
    assert found is not None
    return found[1]


async def log_in(asking: Asking, token: str, after: str = "/usage") -> int:
    data = {"token": token, "next": after, "form_token": await form(asking)}
    return await asking.status("POST", "/login", {"Origin": asking.url}, data=data)


async def test_a_session_lasts_from_login_to_logout(operating: MakeOperator) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await asking.status("GET", "/overrides", {}) == 401
        assert await log_in(asking, ANN) == 303
        assert asking.fields["Location"] == "/usage"
        cookie = asking.fields["Set-Cookie"]
        assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Max-Age=43200"))
        assert ANN not in cookie
        assert await asking.status("GET", "/overrides", {}) == 200

        origin = {"Origin": asking.url}
        assert await asking.act(origin) == 403  # the session cookie without a form token
        assert await asking.act({**origin, "X-Form-Token": await form(asking)}) == 200
        assert await asking.who == "ann"

        assert await asking.status("POST", "/logout", origin) == 403
        data = {"form_token": await form(asking)}
        assert await asking.status("POST", "/logout", origin, data=data) == 303
        assert await asking.status("GET", "/overrides", {}) == 401


async def test_a_session_has_the_right_of_its_token(operating: MakeOperator) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await log_in(asking, MONITOR) == 303
        assert await asking.act({"X-Form-Token": await form(asking)}) == 403
        assert "monitor has no right to operate" in asking.text


async def test_a_session_is_valid_on_other_replicas_until_its_token_changes(
    operating: MakeOperator,
) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await log_in(asking, ANN) == 303
        (cookie,) = (each for each in asking.session.cookie_jar if each.key == SESSION)
    async with asked(operating(TOKENS)) as another:  # like another replica, or a restarted one
        fields = {"Cookie": f"{SESSION}={cookie.value}"}
        assert await another.status("GET", "/overrides", fields) == 200
    async with asked(operating(TOKENS.replace(ANN, f"{ANN}-anew"))) as changed:
        assert await changed.status("GET", "/overrides", fields) == 401


@pytest.mark.parametrize(
    ("rules", "instead"),
    [
        ("", "read without one"),
        ("admin: { sign_on: { proxies: [10.0.0.0/8] } }\n", "use the single sign-on"),
    ],
)
async def test_without_configured_tokens_the_login_suggests_another_way(
    operating: MakeOperator, rules: str, instead: str
) -> None:
    async with asked(operating(rules)) as asking:
        for _ in range(25):
            assert await log_in(asking, ANN) == 401
        assert f"in the configuration has no tokens; {instead}." in asking.text


async def test_a_login_with_a_wrong_token_does_not_create_a_session(
    operating: MakeOperator,
) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await log_in(asking, "<b>wrong</b>") == 401
        assert "The token is not listed under" in asking.text
        assert "<b>" not in asking.text
        assert not [each for each in asking.session.cookie_jar if each.key == SESSION]
        data = {"token": ANN, "next": "/"}
        assert await asking.status("POST", "/login", {}, data=data) == 403
        assert len(dict(asking.operator.totals.counted("admin_refusals"))) == 2


@pytest.mark.parametrize("after", ["//evil.example", "/\\evil.example", "http://evil", "", "/\n/"])
async def test_the_login_redirects_only_to_paths_of_this_port(
    operating: MakeOperator, after: str
) -> None:
    async with asked(operating(TOKENS)) as asking:
        assert await log_in(asking, ANN, after) == 303
        assert asking.fields["Location"] == "/"


async def test_without_configured_tokens_a_browser_may_not_operate(operating: MakeOperator) -> None:
    async with asked(operating("")) as asking:
        assert await log_in(asking, ANN) == 401
        assert await asking.act({"Origin": asking.url, "X-Form-Token": await form(asking)}) == 403


@pytest.mark.parametrize("cookie", [b"\xff", b"f0", b"a" * 4000])
async def test_a_malformed_form_token_is_replaced(operating: MakeOperator, cookie: bytes) -> None:
    """A cookie can have any bytes, which cannot be written into the page."""
    async with asked(operating(TOKENS)) as asking:
        reader, writer = await asyncio.open_connection(*asking.url.rpartition("/")[2].split(":"))
        writer.write(
            b"GET /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Cookie: gateway_form=" + cookie + b"\r\n\r\n"
        )
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"Set-Cookie: gateway_form=" in answer


def test_a_session_is_valid_only_with_its_token_and_until_it_expires() -> None:
    cookie = new_session(HOLDER, NOW)
    assert session_holder(cookie, [OTHER, HOLDER], NOW + SECONDS - 1) is HOLDER
    assert session_holder(cookie, [OTHER, HOLDER], NOW + SECONDS) is None
    assert session_holder(cookie, [OTHER], NOW) is None
    assert session_holder(cookie, [HOLDER._replace(digest=OTHER.digest)], NOW) is None


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "...",
        "ann.b",
        new_session(HOLDER, NOW).replace("ann.b", "ben"),
        new_session(HOLDER, NOW).replace("18000", "19000"),
        new_session(HOLDER, NOW)[:-1],
        new_session(HOLDER, NOW) + "\xe9",
    ],
)
def test_a_forged_session_is_refused(forged: str) -> None:
    assert session_holder(forged, [HOLDER, OTHER], NOW) is None
