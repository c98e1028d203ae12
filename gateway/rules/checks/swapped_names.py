"""Renames whose two names stand the wrong way round, which the documents of both versions show."""

from gateway.conversion.changes.change_section import ChangeSection, Upgrade
from gateway.conversion.changes.rename import RenameSection


def renamed(section: ChangeSection, upgrade: Upgrade, *, upwards: bool) -> str:
    """Return the name that a rename gives what it looks for; empty for any other change.

    Args:
        section: the change.
        upgrade: its upgrade, with the names from outside of a group.
        upwards: whether messages are converted to the newer version.
    """
    if not isinstance(section, RenameSection):
        return ""
    (name,) = upgrade.makes if upwards else upgrade.takes
    return name


def swapped(missing: str, there: str, *, upwards: bool) -> str:
    """Return what would be right where each version has the name that is said of the other."""
    other = "newer" if upwards else "older"
    return f"it has '{there}', and the {other} version has '{missing}': swap 'field' and 'to'"
