"""The state machines of connections: transition tables for clients and for services.

Client connections
==================

The parser processes received bytes while the connection's task processes the parsed requests one
after the other. A client may pipeline requests (RFC 9112, section 9.3.2); they wait in a bounded
queue. The state describes the task, since deadlines, shutdowns and lost connections depend on it:

- While no request is queued, received bytes belong to the next head. The first byte changes IDLE
  to HEAD. The last byte of the head, or a byte that is not HTTP, changes it to ASKED. IDLE and
  HEAD have separate timeouts.
- ANSWERING begins when the task takes a request from the queue. It ends with ANSWERED, when the
  response is written and the request body is completely read. If another request is already queued,
  IDLE changes to ASKED at once.
- A shutdown closes a connection after the current or pending response: LAST_ASKED and LAST are the
  counterparts of ASKED and ANSWERING after which no request follows.
- In TUNNEL, bytes of another protocol pass in both directions; no HTTP follows.
- In ENDING, no further request is processed, and received bytes are discarded until the transport
  is closed.

All events come from `ClientConnection`, so an illegal event is a bug in that class.

Connections to services
=======================

A connection to a service carries one exchange at a time: a request and its response. Then the next
exchange follows, or the connection ends. The state answers four questions:

- Has the connection carried an exchange before? If a kept connection ends before the first byte of
  the response, the service most likely closed it before it received the request. If a fresh
  connection ends in this way, the service has failed. Therefore FRESH, SENDING and WAITING have the
  counterparts KEPT, SENDING_KEPT and WAITING_KEPT.
- Is the request completely sent? A response may arrive earlier (RFC 9112, section 9.3). A service
  that responds early may not read the rest of the request, so the connection can be reused only if
  the request is completely sent when the response ends. EARLY_HEAD and EARLY_BODY correspond to
  HEAD and BODY while the request is still being sent.
- What ends the response body? In BODY, a length or the last chunk; the connection stays open.
  LAST_BODY is the same, but the connection closes afterwards. In ENDLESS_BODY, the end of the
  connection ends the body (RFC 9112, section 6.3, rule 8).
- Is the protocol still HTTP? In SWITCHED, bytes of another protocol pass in both directions until
  the connection ends. The new protocol begins after the complete request: until then, the client
  sends the rest of its body (RFC 9110, section 7.8).

Interim responses (RFC 9110, section 15.2) begin and end in HEAD; only a final head changes the
state. The gateway causes SEND_ALL, SEND_HEAD, SENT and RELEASE, so an illegal one is a bug in
`UpstreamConnection`. The service causes the other events. If one of these is illegal, such as a
second response, the service violates the protocol, and the connection ends. LOST is legal in every
state except CLOSED; `AT_END` defines what it means for the current exchange.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum, auto
from typing import Final, Generic, NoReturn, TypeVar

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


class IllegalTransitionError(RuntimeError):
    """An event occurred in a state that has no transition for it."""


class Transition(dict[S, S], Generic[S, E]):
    """The next state by current state, for one event.

    Other states raise IllegalTransitionError. It is one column of a TransitionTable. A lookup in it
    takes a third of the time of a lookup in the table, since no tuple is created and no Enum member
    is looked up. Performance-critical code writes `column.get(state) or column[state]`, because the
    square brackets of a dict subclass cost an additional call.

    Args:
        states: the next state for each state in which the event is legal.
    """

    def __init__(self, event: E, states: Mapping[S, S]) -> None:
        super().__init__(states)
        self._event = event

    def __missing__(self, state: S) -> NoReturn:
        raise IllegalTransitionError(f"{self._event.name} cannot happen in {state.name}")


class TransitionTable(dict[tuple[S, E], S]):
    """The next state by current state and event; other pairs raise IllegalTransitionError.

    States and events are IntEnum members: they use the hash and equality of int, while members of a
    plain Enum are hashed by Python code.
    """

    def __missing__(self, key: tuple[S, E]) -> NoReturn:
        state, event = key
        raise IllegalTransitionError(f"{event.name} cannot happen in {state.name}")

    def after(self, event: E) -> Transition[S, E]:
        states = {state: to for (state, each), to in self.items() if each is event}
        return Transition(event, states)


class ClientState(IntEnum):
    IDLE = auto()
    """No request is being processed, and no byte of the next one has arrived."""
    HEAD = auto()
    """Part of a request's head has arrived."""
    ASKED = auto()
    """A request is queued."""
    LAST_ASKED = auto()
    """A request is queued; the connection closes after it."""
    ANSWERING = auto()
    """A request is being processed."""
    LAST = auto()
    """A request is being processed; the connection closes after it."""
    TUNNEL = auto()
    """Bytes of another protocol pass in both directions."""
    ENDING = auto()
    """No further request is processed; the connection closes."""
    CLOSED = auto()
    """The connection has ended."""


class ClientEvent(IntEnum):
    BYTES = auto()
    """Bytes of a head arrived, but not its end."""
    REQUEST = auto()
    """A request was queued, possibly one that cannot be parsed."""
    TAKE = auto()
    """The task begins to process a request."""
    SWITCH = auto()
    """The response switches to another protocol with status 101."""
    ANSWERED = auto()
    """A request was processed, and another can follow."""
    LAST_ANSWERED = auto()
    """A request was processed, and no other can follow."""
    REFUSE = auto()
    """The client sends a request too slowly, or too many clients are connected."""
    FINISH = auto()
    """The gateway shuts down."""
    LOST = auto()
    """The connection has ended."""


_CS, _CE = ClientState, ClientEvent
_ClientRows = dict[tuple[ClientState, ClientEvent], ClientState]
_REQUESTS: _ClientRows = {
    (_CS.IDLE, _CE.BYTES): _CS.HEAD,
    (_CS.HEAD, _CE.BYTES): _CS.HEAD,
    (_CS.IDLE, _CE.REQUEST): _CS.ASKED,
    (_CS.HEAD, _CE.REQUEST): _CS.ASKED,
    (_CS.ASKED, _CE.TAKE): _CS.ANSWERING,
    (_CS.LAST_ASKED, _CE.TAKE): _CS.LAST,
    (_CS.ANSWERING, _CE.SWITCH): _CS.TUNNEL,
    (_CS.LAST, _CE.SWITCH): _CS.TUNNEL,
    (_CS.ANSWERING, _CE.ANSWERED): _CS.IDLE,
    (_CS.LAST, _CE.ANSWERED): _CS.ENDING,
    (_CS.ANSWERING, _CE.LAST_ANSWERED): _CS.ENDING,
    (_CS.LAST, _CE.LAST_ANSWERED): _CS.ENDING,
    (_CS.TUNNEL, _CE.LAST_ANSWERED): _CS.ENDING,
    (_CS.IDLE, _CE.REFUSE): _CS.ENDING,
    (_CS.HEAD, _CE.REFUSE): _CS.ENDING,
}
_SHUTDOWN: _ClientRows = {
    (_CS.IDLE, _CE.FINISH): _CS.ENDING,
    (_CS.HEAD, _CE.FINISH): _CS.ENDING,
    (_CS.ASKED, _CE.FINISH): _CS.LAST_ASKED,
    (_CS.LAST_ASKED, _CE.FINISH): _CS.LAST_ASKED,
    (_CS.ANSWERING, _CE.FINISH): _CS.LAST,
    (_CS.LAST, _CE.FINISH): _CS.LAST,
    (_CS.TUNNEL, _CE.FINISH): _CS.TUNNEL,
    (_CS.ENDING, _CE.FINISH): _CS.ENDING,
    # The task of a closed connection has not ended yet: the client left during a response.
    (_CS.CLOSED, _CE.FINISH): _CS.CLOSED,
}
_CLIENT_LOST: _ClientRows = {
    (state, _CE.LOST): _CS.CLOSED for state in _CS if state is not _CS.CLOSED
}
CLIENT_TRANSITIONS = TransitionTable[ClientState, ClientEvent](
    {**_REQUESTS, **_SHUTDOWN, **_CLIENT_LOST}
)

BETWEEN = frozenset({_CS.IDLE, _CS.HEAD})
"""The states in which received bytes belong to the next head."""


class UpstreamState(IntEnum):
    FRESH = auto()
    """The connection is open and was never used."""
    KEPT = auto()
    """The connection is open, between two exchanges."""
    SENDING = auto()
    """The first request is being sent; no part of its response has arrived."""
    SENDING_KEPT = auto()
    """A further request is being sent; no part of its response has arrived."""
    WAITING = auto()
    """The first request is sent; no part of its response has arrived."""
    WAITING_KEPT = auto()
    """A further request is sent; no part of its response has arrived."""
    EARLY_HEAD = auto()
    """The service responds before the request is completely sent; its final head is due."""
    HEAD = auto()
    """The request is sent, and the final head of the response is due."""
    EARLY_BODY = auto()
    """The body is arriving; the request is still being sent."""
    BODY = auto()
    """The body is arriving; after it, the connection can be used again."""
    LAST_BODY = auto()
    """The body is arriving; after it, the connection closes."""
    ENDLESS_BODY = auto()
    """The body is arriving; it ends with the connection."""
    SWITCHED = auto()
    """Bytes of another protocol pass in both directions."""
    COMPLETE = auto()
    """The response is complete; the connection can be used again."""
    SPENT = auto()
    """The response is complete; the connection closes."""
    CLOSED = auto()
    """The connection has ended."""


class UpstreamEvent(IntEnum):
    SEND_ALL = auto()
    """A complete request is sent, including any body."""
    SEND_HEAD = auto()
    """The head of a request is sent; its body follows in pieces."""
    SENT = auto()
    """The last piece of a request's body is sent."""
    BEGIN = auto()
    """The service begins a response, interim or final."""
    FINAL_HEAD = auto()
    """A final head arrived; after this response the connection can be used again."""
    FINAL_LAST_HEAD = auto()
    """A final head arrived; after this response the connection closes."""
    FINAL_ENDLESS_HEAD = auto()
    """A final head arrived; the end of the connection will end this response."""
    SWITCH = auto()
    """The service switches to the requested protocol with status 101."""
    PIECE = auto()
    """A piece of the body arrived."""
    CLOSING = auto()
    """The trailers contain a Connection field, so the service may close the connection."""
    END = auto()
    """An interim or final response ends."""
    RELEASE = auto()
    """The exchange is over, and the connection is free for the next one."""
    LOST = auto()
    """The connection has ended."""


class ConnectionEnd(Enum):
    """The meaning of the end of a connection for the current exchange."""

    NOTHING = auto()
    """No exchange is affected."""
    UNREACHABLE = auto()
    """The service closed a fresh connection without a response."""
    STALE = auto()
    """The service closed a kept connection, most likely before it received the request."""
    BROKEN = auto()
    """The response was cut off."""
    END = auto()
    """The response is complete, unless the connection ended with an error."""


_S, _E = UpstreamState, UpstreamEvent
_Rows = dict[tuple[UpstreamState, UpstreamEvent], UpstreamState]
_TRAFFIC: _Rows = {
    (_S.FRESH, _E.SEND_ALL): _S.WAITING,
    (_S.FRESH, _E.SEND_HEAD): _S.SENDING,
    (_S.KEPT, _E.SEND_ALL): _S.WAITING_KEPT,
    (_S.KEPT, _E.SEND_HEAD): _S.SENDING_KEPT,
    (_S.SENDING, _E.SENT): _S.WAITING,
    (_S.SENDING_KEPT, _E.SENT): _S.WAITING_KEPT,
    (_S.EARLY_HEAD, _E.SENT): _S.HEAD,
    (_S.EARLY_BODY, _E.SENT): _S.BODY,
    (_S.LAST_BODY, _E.SENT): _S.LAST_BODY,
    (_S.ENDLESS_BODY, _E.SENT): _S.ENDLESS_BODY,
    (_S.SENDING, _E.BEGIN): _S.EARLY_HEAD,
    (_S.SENDING_KEPT, _E.BEGIN): _S.EARLY_HEAD,
    (_S.WAITING, _E.BEGIN): _S.HEAD,
    (_S.WAITING_KEPT, _E.BEGIN): _S.HEAD,
    (_S.EARLY_HEAD, _E.BEGIN): _S.EARLY_HEAD,
    (_S.HEAD, _E.BEGIN): _S.HEAD,
    (_S.EARLY_HEAD, _E.END): _S.EARLY_HEAD,
    (_S.HEAD, _E.END): _S.HEAD,
    (_S.EARLY_HEAD, _E.FINAL_HEAD): _S.EARLY_BODY,
    (_S.HEAD, _E.FINAL_HEAD): _S.BODY,
    (_S.EARLY_HEAD, _E.FINAL_LAST_HEAD): _S.LAST_BODY,
    (_S.HEAD, _E.FINAL_LAST_HEAD): _S.LAST_BODY,
    (_S.EARLY_HEAD, _E.FINAL_ENDLESS_HEAD): _S.ENDLESS_BODY,
    (_S.HEAD, _E.FINAL_ENDLESS_HEAD): _S.ENDLESS_BODY,
    (_S.EARLY_BODY, _E.PIECE): _S.EARLY_BODY,
    (_S.BODY, _E.PIECE): _S.BODY,
    (_S.LAST_BODY, _E.PIECE): _S.LAST_BODY,
    (_S.ENDLESS_BODY, _E.PIECE): _S.ENDLESS_BODY,
    (_S.EARLY_BODY, _E.CLOSING): _S.LAST_BODY,
    (_S.BODY, _E.CLOSING): _S.LAST_BODY,
    (_S.LAST_BODY, _E.CLOSING): _S.LAST_BODY,
    (_S.EARLY_BODY, _E.END): _S.SPENT,
    (_S.BODY, _E.END): _S.COMPLETE,
    (_S.LAST_BODY, _E.END): _S.SPENT,
    (_S.ENDLESS_BODY, _E.END): _S.SPENT,
    # A response to HEAD ends with its head, but the parser may report its end once more.
    (_S.COMPLETE, _E.END): _S.COMPLETE,
    (_S.SPENT, _E.END): _S.SPENT,
    (_S.COMPLETE, _E.RELEASE): _S.KEPT,
    # After a 101 response, no HTTP follows.
    (_S.HEAD, _E.SWITCH): _S.SWITCHED,
    (_S.SWITCHED, _E.END): _S.SWITCHED,
}
_LOST: _Rows = {(state, _E.LOST): _S.CLOSED for state in _S if state is not _S.CLOSED}
UPSTREAM_TRANSITIONS = TransitionTable[UpstreamState, UpstreamEvent]({**_TRAFFIC, **_LOST})

AT_END = {
    _S.FRESH: ConnectionEnd.NOTHING,
    _S.KEPT: ConnectionEnd.NOTHING,
    _S.SENDING: ConnectionEnd.UNREACHABLE,
    _S.SENDING_KEPT: ConnectionEnd.STALE,
    _S.WAITING: ConnectionEnd.UNREACHABLE,
    _S.WAITING_KEPT: ConnectionEnd.STALE,
    _S.EARLY_HEAD: ConnectionEnd.BROKEN,
    _S.HEAD: ConnectionEnd.BROKEN,
    _S.EARLY_BODY: ConnectionEnd.BROKEN,
    _S.BODY: ConnectionEnd.BROKEN,
    _S.LAST_BODY: ConnectionEnd.BROKEN,
    _S.ENDLESS_BODY: ConnectionEnd.END,
    _S.SWITCHED: ConnectionEnd.END,
    _S.COMPLETE: ConnectionEnd.NOTHING,
    _S.SPENT: ConnectionEnd.NOTHING,
}
FREE: Final = frozenset({_S.FRESH, _S.KEPT})
OVER: Final = frozenset({_S.COMPLETE, _S.SPENT})
