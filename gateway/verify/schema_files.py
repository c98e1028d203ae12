"""A quick check that the documents in gateway.yaml exist and look like OpenAPI.

To save memory, documents are parsed only by `verify` and for the validation of samples.
"""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.base.files import read_regular
from gateway.base.mistakes import Mistakes
from gateway.base.urls import is_http_url

if TYPE_CHECKING:  # the process that compiles documents needs no snapshot
    from gateway.routing.snapshot import Api

# UTF-16: a byte order mark, or every second byte is zero.
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|\x00.\x00|.\x00.\x00", re.DOTALL)
# The key `openapi` in JSON or YAML (OpenAPI 3.1.0, section 4.8.1), or `swagger` of Swagger 2.0.
_OPENAPI = re.compile(
    rb"""(?<![\w-])["']?(?:openapi["']?\s*:\s*["']?3\.|swagger["']?\s*:\s*["']?2\.0)"""
)
# A search blocks other threads, so the text is searched in pieces. If the keys are sorted,
# `openapi` comes after all schemas. A search of 8 MB took 80 ms.
_PIECE, _OVERLAP = 2**16, 64


def check_documents(apis: "Iterable[Api]", folder: Path, mistakes: Mistakes) -> None:
    """Report each file that cannot be read or is not OpenAPI 3; URLs are skipped."""
    for api in apis:
        for label, version in api.versions.items():
            location = api.schemas.get(version, "http://")
            if not is_http_url(location):
                at = ("apis", api.name, "versions", label, "schema")
                mistakes.attempt(partial(check_file, folder, location), *at)


def check_file(folder: Path, location: str) -> None:
    """Raise ValueError if a file cannot be read or is not OpenAPI 3."""
    try:
        text = read_regular(folder / location)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ValueError(
            f"'{location}' cannot be read: {reason}; name a file beside this one, or a URL"
        ) from None
    if is_utf_16(text):
        raise ValueError(f"'{location}' is in UTF-16; save it as UTF-8")
    pieces = range(0, len(text), _PIECE)
    if not any(_OPENAPI.search(text, begin, begin + _PIECE + _OVERLAP) for begin in pieces):
        raise ValueError(
            f"'{location}' is not an OpenAPI document; name one: 3.0, 3.1 or Swagger 2.0"
        )


def is_utf_16(text: bytes) -> bool:
    """Return whether a document is in UTF-16, which JSON does not allow (RFC 8259, section 8.1)."""
    return _UTF_16.match(text) is not None
