"""A copy of an answer's body as its client got it, to be validated afterwards."""

from typing import NamedTuple

from gateway.base.headers import HeaderFields


class AnswerCopy(NamedTuple):
    """The body of an answer with the header fields that describe it.

    Attributes:
        fields: the header fields, before the gateway compressed the body.
        body: the body, likewise.
        converted: whether a conversion has made it.
    """

    fields: HeaderFields
    body: bytes
    converted: bool
