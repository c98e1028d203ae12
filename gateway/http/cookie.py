"""Set-Cookie (RFC 6265): the paths and hosts to which a client returns a cookie.

A client would never return a cookie whose path exists only at the service.
"""

from collections.abc import Callable, Iterable


def map_cookie(value: str, path: Callable[[str], str], keeps: Callable[[str], bool]) -> str:
    """Return the value of a Set-Cookie field, rewritten for the client.

    Args:
        path: Maps a path of the service to the public path.
        keeps: Returns whether to keep a Domain attribute. Without one, the client returns the
            cookie only to the host that it requested.
    """
    pair, *attributes = value.split(";")
    kept = [pair]
    for attribute in attributes:
        name, sign, text = attribute.partition("=")
        known, stripped = name.strip(" \t").lower(), text.strip(" \t")
        if known == "path" and stripped.startswith("/"):
            attribute = f"{name}{sign}{text.replace(stripped, path(stripped))}"
        if known != "domain" or keeps(stripped):
            kept.append(attribute)
    return ";".join(kept)


def path_above(public: str, served: str, prefix: str) -> str | None:
    """Return the public path that corresponds to a prefix of a service's path; None if unknown."""
    if served != prefix and not served.startswith(f"{prefix}/"):
        return None
    rest = served[len(prefix) :]
    return public[: len(public) - len(rest)] or "/" if public.endswith(rest) else None


def covers_only_services(domain: str, public: str, others: Iterable[str]) -> bool:
    """Return whether a cookie's domain covers a service's host but not the public host.

    All hosts are in lower case. `domain` is the Domain attribute, with or without a leading dot.
    """
    domain = domain.removeprefix(".").lower()
    return not _within(public, domain) and any(_within(host, domain) for host in others)


def _within(host: str, domain: str) -> bool:
    """Return whether a host belongs to a domain (RFC 6265, section 5.1.3)."""
    return host == domain or host.endswith(f".{domain}")
