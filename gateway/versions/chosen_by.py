"""What chose the version of a request."""

from enum import StrEnum


class ChosenBy(StrEnum):
    """A mechanism that the request named the version by, or what stood in for it."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    ACCEPT = "accept"
    HOST = "host"
    CONTENT_TYPE = "content_type"
    PIN = "pin"
    DEFAULT = "default"
    NEWEST = "newest"


UNNAMED = frozenset({ChosenBy.PIN, ChosenBy.DEFAULT, ChosenBy.NEWEST})
"""What chooses the version of a request that names none."""
