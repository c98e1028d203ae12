"""The keys of gateway.yaml, read from the JSON Schema of its models.

That is the committed copy, which a test compares: making it takes a second of each worker's time.
"""

import json
from typing import Any

from stack.schema_keys import SchemaKeys
from tests.gateway.kit import ROOT

COMMITTED = ROOT / "gateway.schema.json"
SCHEMA: dict[str, Any] = json.loads(COMMITTED.read_text())
MODELS = SchemaKeys(SCHEMA).models
KEYS = tuple(SchemaKeys(SCHEMA).keys())
