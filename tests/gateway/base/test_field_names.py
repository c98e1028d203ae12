"""Names of header fields that are remembered."""

from gateway.base.headers import FieldNames


def test_any_case_of_a_name_is_found() -> None:
    names = FieldNames({b"content-length"})
    for _ in range(2):
        assert names.examine(b"Content-Length") == b"content-length"
        assert names.examine(b"CONTENT-LENGTH") == b"content-length"
        assert names.examine(b"Content-Type") is None
    assert names.known == {
        b"Content-Length": b"content-length",
        b"CONTENT-LENGTH": b"content-length",
        b"Content-Type": None,
    }


def test_memory_is_bounded() -> None:
    names = FieldNames({b"a"})
    for number in range(5000):
        assert names.examine(b"x-%d" % number) is None
    assert len(names.known) == 1024
    names = FieldNames({b"a" * 65})
    assert names.examine(b"A" * 65) == b"a" * 65
    assert not names.known
