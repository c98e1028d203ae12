"""What commands read of files: a body, and the conversions as they are declared in the rules."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.base.regular_file import MAX_BYTES
from gateway.conversion.declared.groups import Part
from gateway.http.limits import Limits
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import read_rules
from gateway.rules.parts import parts_of
from gateway.rules.root import Config
from gateway.rules.source import read


def declared_parts(path: Path, snapshot: Snapshot) -> Mapping[str, Sequence[Part]]:
    """Return the parts of the conversions of each API, by its name."""
    data = read(read_rules(path), str(path), os.environ).data
    config = Config.model_validate_json(json.dumps(data))
    return {
        api.name: parts_of(api, section.conversions, section.groups)
        for api in snapshot.apis
        for section in (config.apis[api.name],)
    }


def read_body(path: Path, limits: Limits) -> bytes:
    """Return the body in a file, without the line feed that a shell adds.

    Args:
        path: of the file, `-` being the standard input; it may be a device, which has no end.
        limits: those of the rules; a larger body than they let be converted may pass as it is.

    Raises:
        ValueError: it cannot be read, or is too large.
    """
    most = max(MAX_BYTES, limits.convert)
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(most + 2)
        else:
            with path.open("rb") as file:
                content = file.read(most + 2)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; name a file, or -") from None
    content = content.removesuffix(b"\n")
    if len(content) > most:
        raise ValueError(f"the body is larger than {most} bytes; try a smaller one")
    return content
