"""Serialization of the head of a request to a service, in HTTP/1.1."""

from gateway.proxy.upstream.upstream import UpstreamRequest


def request_bytes(request: UpstreamRequest, authority: bytes) -> bytes:
    """Return the bytes of a request in HTTP/1.1: the head, and the body if it is complete.

    Args:
        request: the request to send.
        authority: the authority of the target, for Host unless the request sets a host.
    """
    begin = f"{request.method} {request.target} HTTP/1.1\r\nHost: "
    lines = [begin.encode("utf-8", "surrogateescape"), request.host or authority, b"\r\n"]
    for name, value in request.fields:
        lines += (name, b": ", value, b"\r\n")
    body = request.body
    if isinstance(body, bytes):
        lines += (b"Content-Length: %d\r\n\r\n" % len(body), body)
    elif body is None:
        lines.append(b"\r\n")
    elif request.length is None:
        lines.append(b"Transfer-Encoding: chunked\r\n\r\n")
    else:
        lines.append(b"Content-Length: %d\r\n\r\n" % request.length)
    return b"".join(lines)
