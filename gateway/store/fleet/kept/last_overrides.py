"""LastOverrides: the overrides that a replica heard last, on its own disk.

A replica that starts while the database cannot be reached goes by them.
"""

from functools import partial
from pathlib import Path

import msgspec

from gateway.base.whole_file import write_whole
from gateway.observe import log
from gateway.store.fleet.kept.own_disk import OwnDisk


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
        self._disk = OwnDisk(self._report)
        self._unwritten: dict[str, object] | None = None

    def read(self) -> dict[str, object] | None:
        """Return the documents by name; None if there are none of this database."""
        try:
            heard = msgspec.json.decode(self._path.read_bytes(), type=_Heard)
        except (OSError, msgspec.DecodeError):
            return None
        return heard.documents if heard.database == self._database else None

    async def keep(self, documents: dict[str, object] | None = None) -> None:
        """Replace what the file has by these documents, or by those that it could not take yet."""
        if documents is not None:
            self._unwritten = documents
        latest = self._unwritten
        if latest is None or not await self._disk.write(partial(self.write, latest)):
            return
        if latest is self._unwritten and not self._failing:
            self._unwritten = None

    def write(self, documents: dict[str, object]) -> None:
        """Replace what the file has; a file that cannot be written is reported once."""
        content = msgspec.json.encode(_Heard(self._database, documents))
        try:
            write_whole(self._path, content)
        except OSError as error:
            self._report((error.strerror or str(error)).lower())
        else:
            self._failing = False

    def _report(self, reason: str) -> None:
        if not self._failing:
            log.event("overrides_not_kept", "warning", reason=f"{self._path}: {reason}")
        self._failing = True
