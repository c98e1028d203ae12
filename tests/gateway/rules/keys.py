"""The keys of gateway.yaml, read from the JSON Schema of its models.

The committed copy is used, since generating the schema takes a second in each test worker. A test
checks that the copy is current.
"""

import json
from typing import Any

from stack.schema_keys import SchemaKeys
from tests.gateway.kit import ROOT

COMMITTED = ROOT / "gateway.schema.json"
SCHEMA: dict[str, Any] = json.loads(COMMITTED.read_text())
MODELS = SchemaKeys(SCHEMA).models
KEYS = tuple(SchemaKeys(SCHEMA).keys())
