"""Replays: the parts of a response that are compared."""

import pytest

from gateway.conversion.document import Document
from gateway.proxy.replay import CapturedResponse
from gateway.rollout.differences import ComparedAnswer
from gateway.rollout.shadow import VersionShadow

RULE = VersionShadow(("orders", "1"), headers=("x-kind",))


@pytest.mark.parametrize(
    ("media", "body", "compared"),
    [
        (b"application/json", b'{"a": 1}', {"a": 1}),
        (b"application/x-ndjson", b'{"a": 1}\r\n\n[2]', [{"a": 1}, [2]]),
        (b"application/x-ndjson", b"{", [b"{"]),
        (
            b"text/event-stream",
            b': ping\n\nid: 7\ndata: {"a": 1}\n\ndata: bye\n\n',
            [{"id": "7", "data": {"a": 1}}, {"data": b"bye"}],
        ),
        (b"text/csv", b"a,1", b"a,1"),
    ],
)
def test_a_body_is_parsed_for_comparison_by_its_media_type(
    media: bytes, body: bytes, compared: Document
) -> None:
    answer = CapturedResponse(200, [(b"Content-Type", media), (b"X-Kind", b"one")], body)
    expected = ComparedAnswer(200, {"x-kind": ("one",)}, compared)
    assert answer.compared(RULE, "GET") == expected
    assert answer.compared(RULE, "HEAD").body == b""
