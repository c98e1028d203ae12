"""Set-Cookie (RFC 6265): the paths and the hosts to which a client returns a cookie.

A cookie whose path is one of the service would never come back from a client that asks by others.
"""

from collections.abc import Callable, Iterable


def map_cookie(value: str, path: Callable[[str], str], keeps: Callable[[str], bool]) -> str:
    """Return the value of a Set-Cookie field for the client.

    Args:
        value: The value, as the service has written it.
        path: Maps a path of the service.
        keeps: Whether a domain stays. Without a domain, the cookie is returned to the host that the
            client asked, and to no other.
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
    """Return what a prefix of a service's path is in a public path; None if that does not show.

    Args:
        public: The public path of a request.
        served: The path of the same request to the service.
        prefix: A path without a slash at its end.
    """
    if served != prefix and not served.startswith(f"{prefix}/"):
        return None
    rest = served[len(prefix) :]
    return public[: len(public) - len(rest)] or "/" if public.endswith(rest) else None


def leaves(domain: str, public: str, others: Iterable[str]) -> bool:
    """Return whether a cookie of a domain is for other hosts, and not for that of the client.

    Args:
        domain: The domain of the cookie, with or without a dot before it.
        public: The host that the client asked, in lower case.
        others: The hosts of services, in lower case.
    """
    domain = domain.removeprefix(".").lower()
    return not _within(public, domain) and any(_within(host, domain) for host in others)


def _within(host: str, domain: str) -> bool:
    """Return whether a host is in a domain (RFC 6265, section 5.1.3)."""
    return host == domain or host.endswith(f".{domain}")
