"""TLS on one connection, to a client or to a service, over `ssl.MemoryBIO`.

`TlsConnection` sits between the TCP transport of the event loop and the protocol of a connection.
It acts as a protocol for the transport, and as a transport for the protocol, whose
`connection_made` is called only after the handshake. So connections need no separate code for
TLS.

TLS by event loops (`ssl=`) costs 16 to 22 µs a request, and this class 2.7 µs: the bytes of a batch
are encrypted and written at once, and reading ends without an exception when no more bytes have
arrived.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, cast

from gateway.http.tls_errors import REASONS, TlsError, tls_error

_READ: Final = 16 * 1024  # the maximum size of a TLS record
_HTTP_METHOD: Final = re.compile(rb"[A-Z]{3,} ")


class ConnectionProtocol(Protocol):
    """The methods that a connection shares with `asyncio.Protocol`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class TlsConnection:  # mypyc compiles no subclass of asyncio.Protocol
    """A protocol for the TCP transport, and a transport for the protocol of the connection.

    Args:
        context: a server context, or a client context together with `server_name`.
        server_name: the name that the server's certificate must contain; None on the server side.
        plain_response: what a server responds to a client that begins with HTTP instead of TLS.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: ConnectionProtocol,
        context: ssl.SSLContext,
        seconds: float,
        shaken: Callable[["TlsConnection", TlsError | None], None],
        server_name: str | None = None,
        session: ssl.SSLSession | None = None,
        plain_response: bytes = b"",
    ) -> None:
        self._loop = loop
        self._protocol: ConnectionProtocol | None = protocol
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls: ssl.SSLObject = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_name is None,
            server_hostname=server_name,
            session=session,
        )
        self._shaken = shaken
        self._plain_response = plain_response
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._tcp: asyncio.Transport | None = None
        self._open = False  # the handshake is complete
        self._ended = False  # reading has ended: the peer closed its side, or TLS failed
        self._shut = False  # writing has ended
        self._paused = False
        # TCP is paused, or its end is not passed on yet, until all received records are read. They
        # stay in the two buffers of OpenSSL while the connection pauses reading.
        self._stalled = False
        self._tcp_ended = False
        self._error: Exception | None = None  # passed to `connection_lost` of the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tcp = cast(asyncio.Transport, transport)
        self._timer = self._loop.call_later(self._seconds, self.fail, TlsError("slow"))
        if self.tls.server_side:
            return  # the client begins
        self._shake()

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        if self._open or self._shake(data):
            self._read()

    def eof_received(self) -> bool | None:
        """End the connection; without a TLS close_notify, the received data may be truncated."""
        if not self._open:
            self.fail(TlsError("closed"))
            return False
        if self._ended or self._protocol is None:
            return not self._shut
        if self._paused or self._incoming.pending or self.tls.pending():
            self._tcp_ended = self._stalled = True
            return True
        return self._cut_off()

    def _cut_off(self) -> bool | None:
        """Report the end of the stream without a close_notify; return whether to stay open."""
        self._ended = True
        self._error = TlsError("closed", "it ended the connection without a TLS close_notify")
        return self._protocol is not None and self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        protocol, self._protocol = self._protocol, None
        self._tcp = None
        if protocol is not None and self._open:
            protocol.connection_lost(exc or self._error)
        elif not self._open and not self._ended:
            self._ended = True
            self._shaken(self, TlsError("closed"))

    def pause_writing(self) -> None:
        if self._open and self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._open and self._protocol is not None:
            self._protocol.resume_writing()

    def _shake(self, data: bytes = b"") -> bool:
        if self._ended or self._tcp is None:
            return False
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            return False
        except ssl.SSLError as error:
            failed = tls_error(error)
            if failed.reason == "not_tls" and self._plain_response and _HTTP_METHOD.match(data):
                failed = TlsError("not_tls", "it sent HTTP without TLS; it has to use https")
                self._tcp.write(self._plain_response)
            else:
                self._send()  # the alert
            self.fail(failed)
            return False
        except (ValueError, OSError) as invalid:  # an invalid server name
            self.fail(TlsError("other", f"{REASONS['other']}: {invalid}"))
            return False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._send()
        self._open = True
        self._shaken(self, None)
        if self._protocol is not None:
            self._protocol.connection_made(cast(asyncio.BaseTransport, self))
        return self._protocol is not None

    def _read(self) -> None:
        incoming, tls = self._incoming, self.tls
        while not self._paused and self._protocol is not None:
            try:
                data = tls.read(_READ)
            except ssl.SSLWantReadError:  # an incomplete record, or a message of TLS itself
                break
            except ssl.SSLZeroReturnError:
                data = b""
            except ssl.SSLError as error:
                self._break(tls_error(error))
                return
            if not data:
                self._peer_ended()
                break
            self._protocol.data_received(data)
            if not (incoming.pending or tls.pending()):
                break
        if self._outgoing.pending:  # a key update, or an alert
            self._send()
        if self._stalled and not self._paused:
            self._continue_tcp()

    def _continue_tcp(self) -> None:
        self._stalled = False
        if self._tcp is None or self._tcp.is_closing():
            return
        if not self._tcp_ended:
            self._tcp.resume_reading()
        elif not self._ended and not self._cut_off():
            self.close()

    def _peer_ended(self) -> None:
        if self._ended:
            self._incoming.read()  # OpenSSL reads nothing after the close_notify
            return
        self._ended = True
        if (self._protocol is not None and not self._protocol.eof_received()) or self._shut:
            self.close()

    def _send(self) -> None:
        data = self._outgoing.read()
        if data and self._tcp is not None and not self._tcp.is_closing():
            self._tcp.write(data)

    def fail(self, error: TlsError) -> None:
        if self._ended:
            return
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._tcp is not None:
            self._tcp.close()  # after the alert
        self._shaken(self, error)

    def _break(self, error: TlsError) -> None:
        self._ended = self._shut = self._paused = True
        self._error = error
        self._send()
        if self._tcp is not None:
            self._tcp.close()

    def write(self, data: bytes) -> None:
        if self._shut:
            return
        try:
            sent = self.tls.write(data)
            if sent < len(data):  # each call writes one record of up to 16 KiB
                rest = memoryview(data)[sent:]
                while rest:
                    rest = rest[self.tls.write(rest) :]
        except ssl.SSLError as error:
            self._break(tls_error(error))
            return
        self._send()

    def write_eof(self) -> None:
        if self._shut:
            return
        self._notify()
        if self._tcp is not None and not self._tcp.is_closing():
            self._tcp.write_eof()

    def close(self) -> None:
        if self._open and not self._shut:
            self._notify()
        self._shut = self._paused = True  # no more records are delivered
        if self._tcp is not None:
            self._tcp.close()

    def abort(self) -> None:
        self._shut = self._paused = True
        if self._tcp is not None:
            self._tcp.abort()

    def _notify(self) -> None:
        self._shut = True
        with suppress(ssl.SSLError):  # usually the peer has not sent its own close_notify yet
            self.tls.unwrap()
        self._send()

    def pause_reading(self) -> None:
        self._paused = self._stalled = True
        if self._tcp is not None:
            self._tcp.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading, first the records that have already arrived."""
        if not self._paused or self.is_closing():
            return
        self._paused = False
        if self._tcp_ended or self._incoming.pending or self.tls.pending():
            self._loop.call_soon(self._read)
        else:
            self._continue_tcp()

    def is_closing(self) -> bool:
        return self._tcp is None or self._tcp.is_closing()

    def get_write_buffer_size(self) -> int:
        return 0 if self._tcp is None else self._tcp.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._tcp is not None:
            self._tcp.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection by name, such as `ssl_object` or `socket`."""
        if name == "ssl_object":
            return self.tls
        if name == "tls_error":
            return self._error
        return default if self._tcp is None else self._tcp.get_extra_info(name, default)
