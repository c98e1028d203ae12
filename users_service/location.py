"""Where a new resource is, in the terms of the client that asked for it."""

import re

from multidict import MultiMapping  # what the headers of aiohttp are

# host [":" port] of RFC 3986, section 3.2, less what no host name has: escapes and sub-delims.
AUTHORITY = re.compile(r"(?:[A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def location(headers: MultiMapping[str], listening: str, path: str, new_id: int) -> str:
    """Return the absolute URL of the new resource, one segment below `path`.

    Scheme and authority are those the client used at the gateway, as X-Forwarded-Proto and
    X-Forwarded-Host tell. Where these are absent, repeated or not sane, they are http and the Host,
    or at last `listening`, the authority that this program listens on.
    """
    protos = [proto.lower() for proto in headers.getall("X-Forwarded-Proto", ())]
    scheme = "https" if protos == ["https"] else "http"
    candidates = (headers.getall(name, ()) for name in ("X-Forwarded-Host", "Host"))
    sane = (found[0] for found in candidates if len(found) == 1 and AUTHORITY.fullmatch(found[0]))
    return f"{scheme}://{next(sane, listening)}{path}/{new_id}"
