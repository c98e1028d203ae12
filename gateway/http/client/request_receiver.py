"""The receiving half of a client's connection: parses bytes into requests, within limits.

aiohttp's parser does the parsing. It gets the bytes in pieces that end where a head or a body does,
so it is known where the next request begins. This module adds limits: on the size of an incomplete
head, on pipelined requests, and on the bytes parsed per client in one turn of the event loop.
"""

import asyncio
from collections.abc import Callable, Sequence

from aiohttp import StreamReader
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestHandler, RequestPayloadError, Server

from gateway.base.errors import Fault
from gateway.http.bounds.deadline import Deadline
from gateway.http.client import first_line, parser_limits
from gateway.http.client.client_response import RequestMessage
from gateway.http.client.client_state import BETWEEN, TRANSITIONS, ClientEvent, ClientState
from gateway.http.client.client_totals import ClientBound, ClientTotals
from gateway.http.client.parser_limits import UNREAD, malformed, refused, too_heavy
from gateway.http.limits import Limits

# The parser stops after twice so many unread bytes of a body, or after so many unread chunks, since
# a chunk costs some microseconds however small it is. This bounds what is parsed for one client in
# one turn of the event loop.
_PARSED_A_TURN = 16 * 1024
_CHUNKS_A_TURN = 128
# Into so many pieces received bytes are cut in one turn of the event loop.
_PIECES_A_TURN = 64
LOOK_AFTER = 1.0
"""After so many seconds without reading, it is looked whether the client has left."""
_END_OF_SECTION = b"\r\n\r\n"

_IDLE, _TUNNEL = ClientState.IDLE, ClientState.TUNNEL
_Parsed = Sequence[tuple[RawRequestMessage, StreamReader]]
_REQUEST = TRANSITIONS.after(ClientEvent.REQUEST)
_ASKED = _REQUEST[_IDLE]
_OTHER_PROTOCOL = malformed("it is of another protocol")


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
        "_deadline",
        "_dropped",
        "_due",
        "_last",
        "_limits",
        "_line",
        "_method",
        "_rest",
        "_resuming",
        "_seam",
        "_state",
        "_totals",
        "_unfinished",
        "_unread",
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
        self._limits = limits
        self._totals = totals
        self._deadline = Deadline(loop, too_slow)
        self._state = ClientState.IDLE
        self._arriving: StreamReader | None = None  # the body that is being parsed
        self._due: int | None = 0  # how much of it is still to come; None if it has chunks
        self._last = False  # whether no request can follow the one that is being parsed
        self._line: bytes | None = b""  # of a head, while its first line is incomplete
        self._method = ""  # of a head that the parser gets with another one
        self._unread = UNREAD  # stands for a head that cannot be parsed
        self._seam = b""  # the last bytes parsed, in which the end of a head may have begun
        # The bytes of the incomplete head; in a chunked body, those since the last content, which
        # are framing and trailer fields.
        self._unfinished = 0
        self._rest = b""  # what waits to be parsed
        self._dropped = False  # whether bytes came behind the last request
        self._resuming = False

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; a malformed body raises an error in its reader."""
        if self._state is not _IDLE or self._rest or self._close or self._force_close:
            self._bytes_came(data)
            return
        # The most frequent case, in one frame for speed: a head, and perhaps its body, as a whole.
        size, end = len(data), data.find(_END_OF_SECTION) + 4
        if end < 4 or size > self._limits.header_bytes or not first_line.HTTP.match(data):
            self._bytes_came(data)
            return
        assert self._parser is not None
        try:
            came, self._upgraded, _ = self._parser.feed_data(data if size == end else data[:end])
        except HttpProcessingError:
            self._parser, came, end = self._new_parser(), [], 0  # it is refused below
        if not came:  # these were empty lines before a head
            self._bytes_came(data[end:])
            return
        message, content = came[0]
        due = 0
        if content is not EMPTY_PAYLOAD and not content.is_eof():
            due = -1 if message.chunked else int(message.headers["Content-Length"][-20:])
        if size - end != due or message.should_close or message.upgrade or due > _PARSED_A_TURN:
            self._head_came(message, content, data, end)
            self._parse(data[end:])
            self._requests_came()
            return
        if due:
            self._parser.feed_data(data[end:])
        self._messages.append((message, content))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._state = _ASKED
        self._deadline.clear()

    def _bytes_came(self, data: bytes) -> None:
        if self._state is _TUNNEL or self._upgraded:
            super().data_received(data)
            return
        if self._force_close or self._close or self._state > _TUNNEL:
            self._dropped = True
            return
        waiting = len(self._messages)
        if not data and self._arriving is not None and not self._reading_paused:
            self._parse_body(b"", 0)  # what the parser has kept since it was paused
        if self._rest:
            data, self._rest = self._rest + data, b""
        self._parse(data)
        if len(self._messages) > waiting:
            self._requests_came()
        elif self._unfinished and self._state in BETWEEN:
            self._await_head()

    def _parse(self, data: bytes) -> None:
        """Parse bytes piece by piece, as long as no other piece has to wait."""
        begin, pieces = 0, 0
        while begin < len(data):
            if self._close:
                self._dropped = True
            elif self._upgraded:
                self._message_tail = data[begin:]
            elif self._reading_paused or len(self._messages) >= self._max_msg_queue_size:
                self._rest = data[begin:]
            elif pieces == _PIECES_A_TURN:
                self._rest = data[begin:]
                self._reading_paused = True
                self._pause_transport_reading()
                self.resume_reading()  # in the next turn
            else:
                parse = self._parse_head if self._arriving is None else self._parse_body
                begin = parse(data, begin)
                pieces += 1
                continue
            break

    def _parse_head(self, data: bytes, begin: int) -> int:
        """Parse bytes up to the end of a head at most; return where they end."""
        end = self._end_of_section(data, begin)
        piece, line = data[begin:end], self._line
        if line is not None:
            line += piece
            self._unread = parser_limits.unread(line)
        assert self._parser is not None
        came: _Parsed
        try:
            came, self._upgraded, _ = self._parser.feed_data(piece)
        except HttpProcessingError as error:
            came = self._parse_other_words(line or b"", error)
        if came:
            ((message, content),) = came
            self._head_came(message, content, line, self._unfinished + len(piece))
        elif not self._close:
            self._part_came(piece, line)
        return end

    def _head_came(
        self, message: RawRequestMessage, content: StreamReader, line: bytes | None, size: int
    ) -> None:
        self._line, self._seam, self._unfinished = b"", b"", 0
        if line is not None and not first_line.HTTP.match(line):
            self._refuse_next(_OTHER_PROTOCOL)
            return
        if self._method:
            message, self._method = message._replace(method=self._method), ""
        limit = self._limits.header_bytes
        if size > limit and parser_limits.size(message) > limit:
            self._refuse_next(too_heavy(self._limits), message)
            return
        self._messages.append((message, content))
        self._last = message.should_close or message.upgrade
        if content.is_eof():
            self._request_over()
            return
        self._arriving = content
        self._due = None if message.chunked else int(message.headers["Content-Length"][-20:])
        # aiohttp derives both from the bytes, and has no other way to set them.
        content._high_water_chunks = _CHUNKS_A_TURN  # noqa: SLF001
        content._low_water_chunks = _CHUNKS_A_TURN // 2  # noqa: SLF001

    def _part_came(self, piece: bytes, line: bytes | None) -> None:
        """Note a part of a head, whose first line is given unless it came earlier as a whole."""
        if not self._unfinished and not piece.strip(b"\r\n"):
            return  # empty lines before a head are ignored (RFC 9112, section 2.2)
        self._seam = (self._seam + piece)[-3:]
        self._unfinished += len(piece)
        if line is not None and b"\n" in line.lstrip(b"\r\n"):
            if not first_line.HTTP.match(line):
                self._refuse_next(_OTHER_PROTOCOL)
                return
            line = None
        self._line = line
        if self._unfinished > parser_limits.largest_head(self._limits):
            self._refuse_next(too_heavy(self._limits))

    def _parse_other_words(self, head: bytes, error: HttpProcessingError) -> _Parsed:
        """Parse a refused head in known words; it is empty if its first line was accepted."""
        fault = parser_limits.fault(error, self._limits)
        known, self._method = first_line.in_known_words(head)
        if known != head:
            self._parser = parser = self._new_parser()
            try:
                came, self._upgraded, _ = parser.feed_data(known)
            except HttpProcessingError as again:
                fault = parser_limits.fault(again, self._limits)
            else:
                return came
        self._refuse_next(fault)
        return ()

    def _parse_body(self, data: bytes, begin: int) -> int:
        """Parse bytes up to the end of a body at most; return where they end."""
        content, due = self._arriving, self._due
        assert content is not None
        assert self._parser is not None
        end = self._end_of_section(data, begin) if due is None else begin + due
        piece, before = data[begin:end], content.total_bytes
        try:
            _, self._upgraded, _ = self._parser.feed_data(piece)
            if due is None and not (content.is_eof() or self._reading_paused):
                # aiohttp's parser stops late, perhaps for a pause that is over, and keeps the rest.
                _, self._upgraded, _ = self._parser.feed_data(b"")
        except HttpProcessingError as error:
            self._refuse_body(content, parser_limits.fault(error, self._limits))
            return begin + len(piece)
        if content.is_eof():
            self._request_over()
        elif due is not None:
            self._due = due - len(piece)
        else:
            self._seam = b"" if piece.endswith(_END_OF_SECTION) else (self._seam + piece)[-3:]
            self._unfinished = 0 if content.total_bytes > before else self._unfinished + len(piece)
            if self._unfinished > parser_limits.largest_head(self._limits):
                self._totals.reached(ClientBound.HEADER_BYTES)
                self._refuse_body(content, malformed("Too much around the content"))
        return begin + len(piece)

    def _end_of_section(self, data: bytes, begin: int) -> int:
        """Return where the first empty line ends, which ends a head and may end chunks."""
        seam = self._seam  # of the bytes before all of these
        end = (seam + data if seam else data).find(_END_OF_SECTION, begin) - len(seam)
        return len(data) if end < -len(seam) else end + len(_END_OF_SECTION)

    def _request_over(self) -> None:
        """Expect another request, if one can follow the one that has come as a whole."""
        if self._due is None:
            # aiohttp's parser keeps the last trailer field and adds it to the header of the next
            # request, which may be another user's if a proxy in front shares connections.
            self._parser = self._new_parser()
        self._arriving, self._due, self._seam, self._unfinished = None, 0, b"", 0
        if self._last and not self._upgraded:
            self._close = True  # what follows is to be ignored (RFC 9112, section 9.6)

    def _refuse_next(self, fault: Fault, message: RequestMessage | None = None) -> None:
        """Have a request refused in its turn, and drop all that follows."""
        self._close = True
        self._messages.append((refused(fault, message or self._unread), EMPTY_PAYLOAD))

    def _refuse_body(self, content: StreamReader, fault: Fault) -> None:
        self._close, self._arriving = True, None
        # aiohttp's reader misses it in the turn in which it is woken by the end of a chunk.
        self._loop.call_soon(content.set_exception, RequestPayloadError())
        if self._messages:  # the request is the last of those that wait
            self._messages[-1] = refused(fault, self._messages[-1][0]), EMPTY_PAYLOAD

    def _requests_came(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._state in BETWEEN:
            self._state = _REQUEST[self._state]
            self._deadline.clear()
        if len(self._messages) > 1 and not self._buffer_paused:
            self._pause_reading_for_buffer()  # further requests wait in the kernel

    def _await_head(self) -> None:
        if self._state is ClientState.IDLE:
            self._deadline.set(self._limits.header_seconds)
        self._state = TRANSITIONS[self._state, ClientEvent.BYTES]

    def _pause_transport_reading(self) -> None:
        """Pause reading, so that nothing tells that the client leaves; it is looked for that."""
        super()._pause_transport_reading()
        if ClientState.HEAD < self._state < _TUNNEL:  # a request is under way
            self._deadline.set(LOOK_AFTER)

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

    def _new_parser(self) -> HttpRequestParser:
        return parser_limits.new_parser(self, self._loop, self._limits, self._read_bufsize)
