"""FixedStatement: a statement that runs often, with its text made once."""

from collections.abc import Mapping
from hashlib import blake2b

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.sql.compiler import SQLCompiler

_DIALECT = dialect()  # type: ignore[no-untyped-call]  # it leaves them out


class FixedStatement:
    """The text of a statement, and the names of its parameters in their order.

    Args:
        statement: of SQLAlchemy.
        columns: those that an UPDATE sets; none for those that the statement itself names.
        kept: whether connections keep it prepared, for one that runs often.

    Attributes:
        text: as the driver takes it.
        name: what connections keep it as; empty if they do not. It says what the text is, so that
            it never stands for another statement, whoever prepared it.
    """

    __slots__ = ("_fixed", "_names", "name", "text")

    def __init__(self, statement: ClauseElement, *columns: str, kept: bool = False) -> None:
        compiled = statement.compile(dialect=_DIALECT, column_keys=columns or None)
        assert isinstance(compiled, SQLCompiler)  # no statement that makes a table
        self.text = str(compiled)
        digest = blake2b(self.text.encode(), digest_size=16).hexdigest()
        self.name = f"gateway_{digest}" if kept else ""
        self._names: tuple[str, ...] = tuple(compiled.positiontup or ())
        binds = compiled.binds.items()
        self._fixed = {name: bind.value for name, bind in binds if not bind.required}

    def arguments(self, values: Mapping[str, object]) -> list[object]:
        """Return the arguments in their order; raises KeyError if one is missing."""
        fixed = self._fixed
        return [values[name] if name in values else fixed[name] for name in self._names]
