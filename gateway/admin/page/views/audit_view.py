"""The view Audit: what was changed, by whom, from where, and why; the replicas; word of events."""

from collections.abc import Mapping

from gateway.admin.page.listing import Listing, listing
from gateway.findings.notification import DOCUMENT, NotifyDocument, read_document
from gateway.rollout.decisions import AuditEntry
from gateway.store.state import FleetView, State, StateError

_COLUMNS = {
    "when": lambda entry: entry.at,
    "who": lambda entry: entry.who.casefold(),
    "what": lambda entry: entry.what,
    "where": lambda entry: (entry.api, entry.version),
}


async def latest_changes(state: State) -> tuple[list[AuditEntry], str]:
    """Return the audit log, and why it cannot be read; empty if it can."""
    try:
        return await state.audit(), ""
    except StateError as error:
        return [], str(error)


async def known_replicas(state: State) -> FleetView:
    """Return the replicas, or the warning that they cannot be read."""
    try:
        return await state.fleet()
    except StateError as error:
        return FleetView([], [f"the replicas cannot be read: {error}"])


async def known_word(state: State) -> NotifyDocument:
    """Return the events of which word was sent, and how far it got; none if unreadable."""
    try:
        found, _ = await state.read_document(DOCUMENT)
    except StateError:
        return NotifyDocument()
    return read_document(found)


def audit_table(entries: list[AuditEntry], query: Mapping[str, str]) -> Listing[AuditEntry]:
    """Return one page of the audit log, the latest first.

    Args:
        entries: all of them.
        query: the parameters of the address: `find`, `sort`, `page`.
    """
    text = query.get("find", "").casefold()

    def fits(entry: AuditEntry) -> bool:
        return any(text in str(part).casefold() for part in entry[1:])

    return listing(entries[::-1], query, _COLUMNS, default="-when", fits=fits if text else None)
