"""The types of a form's fields, where it becomes JSON."""

from decimal import Decimal

import pytest

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document
from gateway.conversion.version_step import FormTypes

TYPES = FormTypes(False, ("size", "lines"), ("on", "flags"), ("lines", "tags"))


@pytest.mark.parametrize(
    ("name", "given", "typed"),
    [
        ("name", "7", "7"),
        ("name", ["7", "8"], ["7", "8"]),
        ("size", "7", 7),
        ("size", "-2.50", Decimal("-2.50")),
        ("size", ["1", "2"], [1, 2]),
        ("size", {}, {}),
        ("lines", "1", [1]),
        ("lines", ["1", "2"], [1, 2]),
        ("tags", "a", ["a"]),
        ("on", "on", True),
        ("on", "0", False),
        ("on", True, True),
        ("flags", ["true", "false", "1"], [True, False, True]),
    ],
)
def test_fields(name: str, given: Document, typed: Document) -> None:
    made = TYPES.typed({name: given})[name]
    assert made == typed
    assert type(made) is type(typed)


@pytest.mark.parametrize(
    ("name", "given"), [("size", ""), ("size", "1,5"), ("size", "9" * 401), ("on", "yes")]
)
def test_what_is_refused(name: str, given: str) -> None:
    with pytest.raises(ConversionError, match=f"^/{name}: expected a "):
        TYPES.typed({name: given})
    assert TYPES.typed({name: given, "lines": "x"}, keeps=True) == {name: given, "lines": ["x"]}
