"""LastOverrides: the overrides that a replica heard last, on its own disk.

A replica that starts while the database cannot be reached goes by them.
"""

from pathlib import Path

import msgspec

from gateway.telemetry import log
from gateway.whole_file import write_whole


class _Heard(msgspec.Struct):
    database: str
    documents: dict[str, object]


class LastOverrides:
    """A file with the overrides that were heard last.

    Args:
        path: of the file.
        database: the name of the database that they come from; those of another are not used.
    """

    def __init__(self, path: Path, database: str) -> None:
        self._path = path
        self._database = database
        self._failing = False

    def read(self) -> dict[str, object] | None:
        """Return the documents by name; None if there are none of this database."""
        try:
            heard = msgspec.json.decode(self._path.read_bytes(), type=_Heard)
        except (OSError, msgspec.DecodeError):
            return None
        return heard.documents if heard.database == self._database else None

    def write(self, documents: dict[str, object]) -> None:
        """Replace what the file has; a file that cannot be written is reported once."""
        content = msgspec.json.encode(_Heard(self._database, documents))
        try:
            write_whole(self._path, content)
        except OSError as error:
            if not self._failing:
                reason = f"{self._path}: {(error.strerror or str(error)).lower()}"
                log.event("overrides_not_kept", "warning", reason=reason)
            self._failing = True
        else:
            self._failing = False
