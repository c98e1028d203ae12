"""The receiving half of a client's connection: parses bytes into requests, within limits.

aiohttp's parser does the parsing. This module adds the limits that the parser lacks: on the size of
an incomplete head, on the number of pipelined requests, and on the bytes parsed per client in one
turn of the event loop.
"""

import asyncio
import re
from collections.abc import Callable
from http import HTTPMethod

from aiohttp import StreamReader
from aiohttp.http import HttpRequestParser, HttpVersion10, RawRequestMessage
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestHandler, RequestPayloadError, Server

from gateway.core.snapshot import Limits
from gateway.proxy.bounds.deadline import Deadline
from gateway.proxy.client import parser_limits
from gateway.proxy.client.client_state import BETWEEN, TRANSITIONS, ClientEvent, ClientState
from gateway.proxy.client.client_totals import ClientBound, ClientTotals
from gateway.proxy.client.head_meter import HeadMeter
from gateway.proxy.client.parser_limits import UNREAD, HeavyRequest, MalformedRequest, queued

# The parser stops after twice so many unread bytes of a body, or after so many unread chunks, since
# a chunk costs some microseconds however small it is. This bounds what is parsed for one client in
# one turn of the event loop.
_PARSED_A_TURN = 16 * 1024
_CHUNKS_A_TURN = 128
_END_OF_HEAD = b"\r\n\r\n"
# Into so many pieces received bytes are cut that are parsed again, which bounds the time of that.
_PIECES = 256
_LATER_VERSION = re.compile(rb"((?:\r\n)*[^\r\n]* HTTP/1\.)[2-9](?=\r|\Z)")
# A method, which may have any name (RFC 9110, section 9.1), in a whole head. llhttp lists names.
_NAMED = re.compile(
    rb"((?:\r\n)*)([\w!#$%&'*+.^`|~-]{1,32})(?= .*\r\n\r\n\Z)", re.ASCII | re.DOTALL
)
_LISTED = frozenset(HTTPMethod)

_Parsed = tuple[list[tuple[RawRequestMessage, StreamReader]], bool, bytes]
"""Requests and the streams of their bodies, whether another protocol follows, and its bytes."""

_IDLE, _TUNNEL = ClientState.IDLE, ClientState.TUNNEL
_REQUEST = TRANSITIONS.after(ClientEvent.REQUEST)
_ASKED = _REQUEST[_IDLE]


class RequestReceiver(RequestHandler):
    """Receives requests of a client, and holds the state of its connection.

    Args:
        server: the server that accepted the connection.
        limits: the limits for the connection.
        totals: the counts of connections and tunnels in this process.
        loop: the event loop.
        too_slow: a function that is called when the deadline of the connection passes.
    """

    __slots__ = (
        "_arriving",
        "_content",
        "_deadline",
        "_end",
        "_limits",
        "_line",
        "_meter",
        "_resuming",
        "_state",
        "_totals",
    )

    def __init__(
        self,
        server: Server,
        limits: Limits,
        totals: ClientTotals,
        loop: asyncio.AbstractEventLoop,
        too_slow: Callable[[], None],
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # for aiohttp, None is no log
            auto_decompress=False,
            keepalive_timeout=0,  # `_deadline` does this
            read_bufsize=_PARSED_A_TURN,
            max_line_size=limits.target,
            max_field_size=parser_limits.longest_field(limits),
            max_headers=limits.header_fields,
        )
        self._msg_queue_resume_size = 0
        self._limits = limits
        self._totals = totals
        self._deadline = Deadline(loop, too_slow)
        self._state = ClientState.IDLE
        self._meter = HeadMeter()
        self._arriving: StreamReader | None = None  # the body that is being parsed
        self._content = EMPTY_PAYLOAD  # the body of the request that is being answered
        self._end = b""  # of what was received; `_END_OF_HEAD` also behind a whole request
        self._line = b""  # a request line that has begun
        self._resuming = False

    def data_received(self, data: bytes) -> None:  # noqa: C901  # one frame, for speed
        """Parse received bytes; a malformed body raises an error in its reader."""
        state = self._state
        if state >= _TUNNEL or self._upgraded:
            super().data_received(data)  # for a tunnel
            return
        if self._force_close or self._close:
            return
        messages, arriving = self._messages, self._arriving
        waiting = len(messages)
        body = 0 if arriving is None else arriving.total_bytes
        assert self._parser is not None
        # This replaces a part of aiohttp's method.
        try:
            came, self._upgraded, tail = self._parser.feed_data(data)
        except HttpProcessingError as error:
            # Only these ends are surely between two requests.
            apart = bool(self._line) or self._end in (b"", _END_OF_HEAD)
            again = self._line + data if apart and arriving is None and not waiting else b""
            came, self._upgraded, tail = self._parse_again(again, error)
            state = ClientState.HEAD  # whatever it was, this is not the most frequent case
        if came:
            messages += came
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            if not self._buffer_paused and len(messages) >= self._max_msg_queue_size:
                self._pause_reading_for_buffer()
        if self._upgraded and tail:
            self._message_tail = tail
        if state is _IDLE and len(messages) == 1 and len(data) <= self._limits.header_bytes:
            (message, content), end = messages[0], data[-4:]
            whole = end == _END_OF_HEAD if content is EMPTY_PAYLOAD else _is_whole(data, content)
            # An error does not come here, and has no version.
            if whole and message.version is not HttpVersion10:  # type: ignore[union-attr]
                # A request in one piece: the most frequent case.
                self._end = _END_OF_HEAD
                self._state = _ASKED
                self._deadline.clear()
                return
        before = self._end
        self._end = (before + data)[-4:] if len(data) < 4 else data[-4:]
        if len(messages) > waiting:
            self._requests_came(data, before, waiting)
        elif arriving is not None:
            self._body_came(data, arriving, content=arriving.total_bytes > body)
        elif data:
            self._head_came(data, before)

    def _requests_came(self, data: bytes, before: bytes, waiting: int) -> None:
        messages, limits = self._messages, self._limits
        content = messages[-1][1]
        line, self._line = self._line, b""
        self._arriving = None if content.is_eof() else content
        if self._arriving is not None:
            # aiohttp derives both from the bytes, and has no other way to set them.
            content._high_water_chunks = _CHUNKS_A_TURN  # noqa: SLF001
            content._low_water_chunks = _CHUNKS_A_TURN // 2  # noqa: SLF001
        fresh = [messages[at][0] for at in range(waiting, len(messages))]
        if self._meter.add_requests(data, before, fresh):
            self._end = _END_OF_HEAD
        for at, message in enumerate(fresh, waiting):
            if isinstance(message, RawRequestMessage):
                if parser_limits.size(message) > limits.header_bytes:
                    messages[at] = queued(HeavyRequest(message)), messages[at][1]
                elif message.version == HttpVersion10 and _is_rtsp(message, line + data):
                    refused = MalformedRequest(BadStatusLine(error="RTSP is another protocol"))
                    messages[at] = queued(refused), messages[at][1]
            elif not self._content.is_eof():
                self._content.set_exception(RequestPayloadError())
        if len(messages) > 1 and not self._buffer_paused:
            self._pause_reading_for_buffer()  # further requests wait in the kernel
        if self._reading_paused or len(messages) >= self._max_msg_queue_size:
            self._meter.unfinished = 0  # the parser holds some bytes back
        elif self._meter.unfinished > parser_limits.largest_head(limits):
            self._refuse_head()
        self._note_request()

    def _body_came(self, data: bytes, arriving: StreamReader, *, content: bool) -> None:
        ended = arriving.is_eof()
        if ended:
            self._arriving = None
        if self._meter.add_body(data, content=content, ended=ended):
            self._end = _END_OF_HEAD
        if self._reading_paused:
            self._meter.unfinished = 0
        elif self._meter.unfinished > parser_limits.largest_head(self._limits) and not ended:
            self._totals.reached(ClientBound.HEADER_BYTES)
            self._close = True
            arriving.set_exception(RequestPayloadError())

    def _head_came(self, data: bytes, before: bytes) -> None:
        self._meter.add_head(data)
        if self._line or before in (b"", _END_OF_HEAD):
            line = (self._line + data).lstrip(b"\r\n")
            self._line = line if b"\n" not in line else b""  # the parser has accepted it
        if self._meter.unfinished > parser_limits.largest_head(self._limits):
            self._refuse_head()
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            self._note_request()
        elif self._state in BETWEEN:
            self._await_head()

    def _refuse_head(self) -> None:
        self._totals.reached(ClientBound.HEADER_BYTES)
        self._close = True  # makes aiohttp drop further bytes
        self._messages.append((queued(HeavyRequest(UNREAD)), EMPTY_PAYLOAD))

    def _note_request(self) -> None:
        if self._state in BETWEEN:
            self._state = _REQUEST[self._state]
            self._deadline.clear()

    def _await_head(self) -> None:
        if self._state is ClientState.IDLE:
            self._deadline.set(self._limits.header_seconds)
        self._state = TRANSITIONS[self._state, ClientEvent.BYTES]

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume parsing in the next turn of the event loop, after other connections."""
        if not resume_parser:
            super().resume_reading(resume_parser=False)
        elif self._reading_paused and not self._resuming:
            # The reader of a body asks for each chunk that it takes, paused or not.
            self._resuming = True
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._resuming = False
        super().resume_reading()

    def _renew_parser(self) -> bool:
        """Replace the parser after a chunked request; return whether that was possible.

        aiohttp's parser keeps the last trailer field and adds it to the header of the next request,
        which may be another user's if a proxy in front shares connections. So each chunked request
        needs a new parser; if more bytes have arrived already, the connection has to close.
        """
        if self._messages or self._end != b"\r\n\r\n":
            return False
        self._parser = self._new_parser()
        return True

    def _parse_again(self, data: bytes, error: HttpProcessingError) -> _Parsed:
        """Return the requests that refused bytes begin with, and what stands for the refused rest.

        The parser loses the requests that come with what it refuses, and refuses what follows a
        request with `Connection: close`, which is to be ignored (RFC 9112, section 9.6). So a new
        parser gets the same bytes piece by piece. It gets later minor versions of HTTP as 1.1, the
        highest one that is known here (RFC 9110, section 2.5), and a method that it does not know
        as another one, in whose place the request has its own again.

        Args:
            data: received bytes from the beginning of a request on; empty if that is not known.
            error: the error of the parser.
        """
        parser, position = self._new_parser(), 0
        # A body that is not read yet pauses the parser of the connection.
        refusing, self._parser = self._parser, parser
        found: list[tuple[RawRequestMessage, StreamReader]] = []
        for _ in range(_PIECES if data else 0):
            end = data.find(_END_OF_HEAD, position) + len(_END_OF_HEAD)
            if end < len(_END_OF_HEAD):
                end = len(data)
            piece = data[position:end]
            named = None
            if not found or found[-1][1].is_eof():
                if found and found[-1][0].should_close:
                    break
                piece, named = _in_known_words(piece)
            elif (length := found[-1][0].headers.get("Content-Length")) is not None:
                end = position + int(length) - found[-1][1].total_bytes
                piece = data[position:end]
            try:
                came, upgraded, tail = parser.feed_data(piece)
            except HttpProcessingError as refused:
                error = refused.with_traceback(None)  # which refers to this frame: a cycle
                error.__context__ = None  # and so does that of the first error
                if found and not found[-1][1].is_eof():
                    found.pop()  # its body is what is refused
                break
            if named and came:
                came[0] = came[0][0]._replace(method=named), came[0][1]
            found += came
            position = end
            if upgraded or position >= len(data):
                return found, upgraded, tail + data[position:]
        self._parser = refusing
        return [*found, (queued(MalformedRequest(error)), EMPTY_PAYLOAD)], False, b""

    def _new_parser(self) -> HttpRequestParser:
        return HttpRequestParser(
            self,
            self._loop,
            self._read_bufsize,
            max_line_size=self._limits.target,
            max_field_size=parser_limits.longest_field(self._limits),
            max_headers=self._limits.header_fields,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=self._max_msg_queue_size,
        )

    def _let_parser_go_on(self) -> None:
        # aiohttp's parser counts the pipelined requests, and stops at a limit.
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()


def _is_whole(data: bytes, content: StreamReader) -> bool:
    """Return whether these bytes are a head and all of its body, and nothing behind it."""
    if not content.is_eof():
        return False
    # The chunks of a body take more bytes than their content.
    return len(data) - data.find(_END_OF_HEAD) - len(_END_OF_HEAD) == content.total_bytes


def _in_known_words(head: bytes) -> tuple[bytes, str | None]:
    """Return the head of a request, or a part of it, in words of HTTP that the parser knows.

    Returns:
        the head with a version of HTTP and a method that the parser knows, and the method whose
        place another one has taken; None for none.
    """
    line = _LATER_VERSION.match(head)
    if line is not None:
        head = line[1] + b"1" + head[line.end() :]
    named = _NAMED.match(head)
    if named is None or (method := named[2].decode()) in _LISTED:
        return head, None
    return named[1] + b"POST" + head[named.end() :], method


def _is_rtsp(message: RawRequestMessage, data: bytes) -> bool:
    """Return whether a request in these bytes is of RTSP/1.0, which the parser takes for HTTP."""
    line = f"{message.method} {message.path} RTSP/"
    return line.encode("utf-8", "surrogateescape") in data
