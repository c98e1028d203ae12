"""Shared by the calls of Kubernetes: annotations of autoscaling/v1, which contain JSON."""

import json
from typing import Any

PREFIX = "autoscaling.alpha.kubernetes.io/"


def opened(document: Any) -> Any:
    """Return a document with its annotations parsed, since the order of keys does not matter."""
    if isinstance(document, list):
        return [opened(one) for one in document]
    if isinstance(document, dict):
        return {
            key: json.loads(value) if key.startswith(PREFIX) else opened(value)
            for key, value in document.items()
        }
    return document
