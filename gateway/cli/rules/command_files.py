"""What commands read of files: a body, and the conversions as they are declared in the rules."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.config.conversions.part import Part, parts_of
from gateway.config.load import read_rules
from gateway.config.root import Config
from gateway.config.text.source import read
from gateway.core.snapshot import Snapshot


def declared_parts(path: Path, snapshot: Snapshot) -> Mapping[str, Sequence[Part]]:
    """Return the parts of the conversions of each API, by its name.

    Args:
        path: of the file.
        snapshot: the rules in it.
    """
    data = read(read_rules(path), str(path), os.environ).data
    config = Config.model_validate_json(json.dumps(data))
    return {
        api.name: parts_of(api, section.conversions, section.groups)
        for api in snapshot.apis
        for section in (config.apis[api.name],)
    }


def read_body(path: Path) -> bytes:
    """Return the content of a file, `-` being the standard input; raises ValueError."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; name a file, or -") from None
