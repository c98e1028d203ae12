"""Functions that house.yaml names."""

from asyncio import CancelledError

from gateway.conversion.message import MessageView

_ENDS = {"EXIT": SystemExit, "CANCEL": CancelledError}


def sign(value: object, message: MessageView) -> object:
    if isinstance(value, dict) and message.direction == "down":
        known = {name: sorted(found) for name, found in message.query.items()}
        return {
            **value,
            "seen": [message.operation, known, message.status, *message.headers["x-a"]],
        }
    return value


def told(text: str, message: MessageView) -> str:
    known = [message.direction, message.operation, message.path, message.status]
    named = [*message.query.get("a", []), *message.headers.get("x-a", [])]
    return " ".join(map(str, [text, *known, *named, message.fields]))


def shout(text: str) -> str:
    return text.upper()


def whisper(text: str) -> object:
    """Convert to lower case; some strings raise an error or return invalid JSON."""
    if text == "TOO MUCH":
        raise ValueError("SECRET")
    if text in _ENDS:
        raise _ENDS[text]("SECRET")
    return {"ODD": [float("nan")], "ODDER": object()}.get(text, text.lower())


def channel(value: object) -> object:
    return {"channel": "web", **value} if isinstance(value, dict) else value
