"""The key `access_log`: the selection of requests for the log, and the file of their lines."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Mistakes
from gateway.base.model import STRICT, NonEmptyText, NumberText


@dataclass(frozen=True, slots=True)
class AccessLog:
    """The selection of requests for the log, and the file of their lines."""

    __pydantic_config__ = STRICT

    file: NonEmptyText | None = None
    """The file to which the lines of requests are appended, as a path relative to gateway.yaml. If
    it is renamed or removed, for example by logrotate, a new file is begun. Without `file`, the
    lines go to standard output, as events always do."""
    ratio: Annotated[float, Field(ge=0, le=1), NumberText] = 1.0
    """The share of successful requests to log, from 0 to 1. The default is 1."""
    errors: bool = True
    """Whether every request is logged that has a status from 400 or whose response ended early,
    whatever the `ratio`. The default is true."""

    def located(self, files: ConfigFiles, mistakes: Mistakes) -> "AccessLog":
        """Return the keys with the whole path of the file."""
        if self.file is None:
            return self
        whole = files.folder / self.file
        if whole.is_dir():
            mistakes.add("is a folder; name a file in it", "file")
        elif not whole.parent.is_dir():
            mistakes.warn(f"warning: the folder {whole.parent} does not exist here", "file")
        return replace(self, file=str(whole))


DEFAULT_ACCESS_LOG = AccessLog()
