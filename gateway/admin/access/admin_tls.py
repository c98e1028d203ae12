"""AdminTls: the certificate of the admin port, loaded again when its files change."""

import asyncio
from pathlib import Path

from gateway.access.admin_rules import TlsFiles
from gateway.access.tls_files import server_context
from gateway.observe import log

# Between two looks at the files, in seconds; a look is two `stat`.
_INTERVAL = 2.0


class AdminTls:
    """Has the certificate and the key that the rules name.

    Attributes:
        context: for new connections.

    Raises:
        ValueError: they cannot be used; the text names the reason.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = self._stamps()
        self.context = server_context(files)

    async def run(self) -> None:
        """Follow the files until cancelled; what cannot be used is logged, and changes nothing."""
        while True:
            await asyncio.sleep(_INTERVAL)
            stamps = self._stamps()
            if stamps == self._seen:
                continue
            self._seen = stamps
            try:
                self.context = server_context(self._files)
            except ValueError as error:
                log.event("admin_tls_rejected", "error", reason=str(error))
            else:
                log.event("admin_tls_loaded", certificate=self._files.certificate)

    def _stamps(self) -> list[tuple[int, int] | None]:
        return [_stamp(path) for path in (self._files.certificate, self._files.key)]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    # Not st_mtime_ns: a key that can be read again after a chmod has the former one.
    return status.st_ctime_ns, status.st_ino
