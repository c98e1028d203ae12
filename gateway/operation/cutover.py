"""Cutover: how one stands, as JSON can say it and as a text for people."""

import msgspec


class Way(msgspec.Struct):
    """How the requests that went one way fared; `mean_ms` is None where there were none."""

    requests: int
    failures: int
    mean_ms: float | None


class Cutover(msgspec.Struct):
    """How a cutover stands.

    Attributes:
        api: the name of the API.
        version: the label of the version that is moved.
        via: the label of the version whose service takes over.
        percent: how much is moved now.
        state: whose word that is, and what was done; see `standing.Word`.
        why: the reason.
        since: when the percentage became what it is.
        next: what comes next.
        old: how it goes the old way, since then and within the window.
        new: how it goes the new way.
        compared: how many answers were compared.
        differing: how many of them differed.
    """

    api: str
    version: str
    via: str
    percent: float
    state: str
    why: str
    since: str
    next: str
    old: Way
    new: Way
    compared: int
    differing: int


def table(found: Cutover) -> str:
    """Return it for people."""
    done = found.state.replace("_", " ")
    facts = {
        "since": f"{found.since}: {found.why}"
        + (f" ({done})" if found.state in ("held", "rolled_back") else ""),
        "next": found.next,
        "old way": _fared(found.old),
        "new way": _fared(found.new),
        "shadow": f"{found.compared} answers compared, {found.differing} differ",
    }
    head = f"Version {found.version} of {found.api}: {found.percent:g}% goes via {found.via}"
    return "\n".join((head, *(f"  {name:<7}  {fact}" for name, fact in facts.items())))


def _fared(way: Way) -> str:
    mean = "" if way.mean_ms is None else f", {way.mean_ms:g} ms on average"
    return f"{way.requests} requests, {way.failures} failed{mean}"
