"""The extras of the distribution, which install the packages of single keys and commands."""

from importlib.util import find_spec


def install(extra: str) -> str:
    return f"which is not installed; run: pip install 'version-gateway[{extra}]'"


def missing(*packages: str) -> str | None:
    """Return the first of these packages that is not installed."""
    return next((name for name in packages if find_spec(name) is None), None)
