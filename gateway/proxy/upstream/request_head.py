"""The bytes of a request to a service, up to where a body in pieces begins."""

from gateway.proxy.upstream.upstream import UpstreamRequest


def request_bytes(request: UpstreamRequest, authority: bytes) -> bytes:
    """Return the head of a request in HTTP/1.1, with its body if that is all here.

    Args:
        request: the request.
        authority: of the target, which Host names unless the request says otherwise.
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
