"""Functions that house.yaml names."""


def shout(text: str) -> str:
    """Say it aloud."""
    return text.upper()


def whisper(text: str) -> object:
    """Say it softly; some texts cannot be."""
    if text == "TOO MUCH":
        raise ValueError("SECRET")
    if text == "EXIT":
        raise SystemExit("SECRET")
    return {"ODD": [float("nan")], "ODDER": object()}.get(text, text.lower())
