"""Opening of the state that the rules name: in memory, in a file, or shared in PostgreSQL."""

from collections.abc import Callable
from pathlib import Path

from gateway.routing.snapshot import Snapshot
from gateway.store.local_state import LocalState
from gateway.store.state_access import StateAccess
from gateway.store.state_store import extra_missing, open_store
from gateway.store.state_writer import StateWriter


async def open_state(
    replica: str,
    rules: Callable[[], Snapshot],
    rules_hash: Callable[[], str],
    refused: Callable[[], str],
    last: Path,
) -> StateAccess:
    """Return the state of a gateway.

    Args:
        replica: the name of the gateway.
        rules: returns the snapshot in force, which names the location of the state.
        rules_hash: returns the hash of its text.
        refused: returns why the rules on disk are not in force; empty if they are.
        last: the file for the overrides that a replica heard last.

    Raises:
        StateError: the state cannot be used.
    """
    location = rules().state
    if location is None:
        return LocalState(StateWriter(None), replica, rules, rules_hash, refused)
    if "://" not in location:
        store = open_store(Path(location))
        writer = StateWriter(store, await store.read())
        return LocalState(writer, replica, rules, rules_hash, refused)
    # The driver of PostgreSQL is memory that no other gateway needs.
    try:
        from gateway.store.fleet.beat import Membership
        from gateway.store.fleet.fleet_state import FleetState
    except ModuleNotFoundError as error:
        raise extra_missing("PostgreSQL", error, "postgresql") from None
    return await FleetState.open(Membership(location, replica, rules, rules_hash, last, refused))
