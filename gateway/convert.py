"""The exception that Python functions of conversions raise to refuse a value."""


class Refused(Exception):  # noqa: N818  # for users, it names the result, not a mistake
    """A Python function raises it to refuse a value with a reason that the client sees.

    Attributes:
        reason: The reason. It is cut after 200 characters, and control characters are escaped.
        pointer: The JSON Pointer (RFC 6901) of the refused part of the value; empty for the value.
    """

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(reason, pointer)
        self.reason, self.pointer = str(reason), str(pointer)
