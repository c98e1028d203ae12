"""The state machines of connections: transition tables for clients and for services.

Client connections
==================

The parser processes received bytes while the connection's task answers the parsed requests one
after the other. A client may pipeline requests (RFC 9112, section 9.3.2); they wait in a bounded
queue. The state is that of the task, since deadlines, shutdowns and lost connections depend on it:

- While no request waits, received bytes belong to the next head: the first byte changes IDLE to
  HEAD, and the last byte, or one that is not HTTP, to ASKED. IDLE and HEAD have separate timeouts.
- ANSWERING begins when the task takes a request from the queue, and ends with ANSWERED when the
  response is written and the request body is read to its end. If a further request waits already,
  IDLE changes to ASKED at once.
- A shutdown ends a connection after the response that is under way or due: LAST_ASKED and LAST are
  ASKED and ANSWERING with no request to follow.
- In TUNNEL, bytes of another protocol pass in both directions; no HTTP follows.
- In ENDING, no further request is answered, and received bytes are dropped until the transport is
  closed.

All events come from `ClientConnection`, so an illegal one is a bug there.

Connections to services
=======================

HTTP/1.1, as the gateway uses it, carries one exchange at a time: a request, its response, then the
next exchange or the end. The state combines four questions:

- Has the connection carried an exchange before? A kept connection that ends before a byte of the
  response arrived was most likely closed before the request reached the service; a fresh one that
  ends so is a failure. Hence FRESH, SENDING and WAITING have the counterparts KEPT, SENDING_KEPT
  and WAITING_KEPT.
- Is the request sent? A response may come before its request is complete (RFC 9112, section 9.3).
  A service that answers early may not read the rest, so the connection can be used again only if
  the request is completely sent when the response ends. EARLY_HEAD and EARLY_BODY are HEAD and
  BODY with a request that is still being sent.
- What ends the body? In BODY a length or the last chunk, and the connection stays open; in
  LAST_BODY the same, and the connection closes; in ENDLESS_BODY the end of the connection (RFC
  9112, section 6.3, rule 8).
- Is it still HTTP? In SWITCHED, bytes of another protocol pass in both directions until the end.
  That begins behind the request: until it is sent, the client sends the rest of its body (RFC 9110,
  section 7.8).

Interim responses (RFC 9110, section 15.2) begin and end in HEAD; only a final head leaves it. The
gateway causes SEND_ALL, SEND_HEAD, SENT and RELEASE, so an illegal one is a bug in
`UpstreamConnection`. The service causes the others; an illegal one, such as a second response,
violates the protocol and ends the connection. LOST is legal in every state but CLOSED; `AT_END`
defines what it means for the exchange under way.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum, auto
from typing import Final, Generic, NoReturn, TypeVar

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


class IllegalTransitionError(RuntimeError):
    """An event occurred in a state that has no transition for it."""


class Transition(dict[S, S], Generic[S, E]):
    """The next state by state, after one event; a missing state raises IllegalTransitionError.

    It is one column of a TransitionTable. A look-up in it costs a third of one in the table, since
    no pair is made and no member of an Enum is looked up. Hot code writes `column.get(state) or
    column[state]`: the square brackets of a subclass of dict take a call of their own.

    Args:
        event: the event.
        states: the next state for each state in which the event is legal.
    """

    def __init__(self, event: E, states: Mapping[S, S]) -> None:
        super().__init__(states)
        self._event = event

    def __missing__(self, state: S) -> NoReturn:
        """Raise IllegalTransitionError with the names of the state and the event."""
        raise IllegalTransitionError(f"{self._event.name} cannot happen in {state.name}")


class TransitionTable(dict[tuple[S, E], S]):
    """The next state by state and event; a missing pair raises IllegalTransitionError.

    States and events are IntEnum, whose hash and equality are those of int, where plain Enum
    hashes in Python.
    """

    def __missing__(self, key: tuple[S, E]) -> NoReturn:
        """Raise IllegalTransitionError with the names of the state and the event."""
        state, event = key
        raise IllegalTransitionError(f"{event.name} cannot happen in {state.name}")

    def after(self, event: E) -> Transition[S, E]:
        """Return the column of an event: the next state by state."""
        states = {state: to for (state, each), to in self.items() if each is event}
        return Transition(event, states)


class ClientState(IntEnum):
    """The state of a client's connection."""

    IDLE = auto()
    """No request is under way, and no byte of the next one has arrived."""
    HEAD = auto()
    """A part of a request's head has arrived."""
    ASKED = auto()
    """A request waits to be answered."""
    LAST_ASKED = auto()
    """A request waits to be answered; the connection closes after it."""
    ANSWERING = auto()
    """A request is being answered."""
    LAST = auto()
    """A request is being answered; the connection closes after it."""
    TUNNEL = auto()
    """Bytes of another protocol pass in both directions."""
    ENDING = auto()
    """No further request is answered; the connection closes."""
    CLOSED = auto()
    """The connection has ended."""


class ClientEvent(IntEnum):
    """An event on a client's connection."""

    BYTES = auto()
    """Bytes of a head arrived, without its end."""
    REQUEST = auto()
    """A request waits to be answered, possibly one that cannot be parsed."""
    TAKE = auto()
    """The task begins to answer a request."""
    SWITCH = auto()
    """The response switches to another protocol with status 101."""
    ANSWERED = auto()
    """A request is answered, and another can follow."""
    LAST_ANSWERED = auto()
    """A request is answered, and none can follow."""
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
    # Its task has not ended yet: a response was under way when the client left.
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
    """The state of a connection to a service."""

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
    """An interim or final head is arriving or due; the request is still being sent."""
    HEAD = auto()
    """An interim or final head is arriving or due; the request is sent."""
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
    """An event on a connection to a service."""

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
    """A final head arrived; this response ends with the connection."""
    SWITCH = auto()
    """The service switches to the requested protocol with status 101."""
    PIECE = auto()
    """A piece of the body arrived."""
    CLOSING = auto()
    """A Connection field arrived in the trailers, by which the service may close."""
    END = auto()
    """An interim or final response ends."""
    RELEASE = auto()
    """The exchange is over, and the connection is free for another one."""
    LOST = auto()
    """The connection has ended."""


class ConnectionEnd(Enum):
    """The meaning of a connection's end for the exchange under way."""

    NOTHING = auto()
    """No exchange is under way."""
    UNREACHABLE = auto()
    """The service closed a fresh connection without a response."""
    STALE = auto()
    """The service closed a kept connection, most likely before it received the request."""
    BROKEN = auto()
    """The response broke off."""
    END = auto()
    """The response is complete, unless the connection ended with an error."""


_S, _E = UpstreamState, UpstreamEvent
_Rows = dict[tuple[UpstreamState, UpstreamEvent], UpstreamState]
_TRAFFIC: _Rows = {
    # The request is sent.
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
    # The response begins, with interim ones before it.
    (_S.SENDING, _E.BEGIN): _S.EARLY_HEAD,
    (_S.SENDING_KEPT, _E.BEGIN): _S.EARLY_HEAD,
    (_S.WAITING, _E.BEGIN): _S.HEAD,
    (_S.WAITING_KEPT, _E.BEGIN): _S.HEAD,
    (_S.EARLY_HEAD, _E.BEGIN): _S.EARLY_HEAD,
    (_S.HEAD, _E.BEGIN): _S.HEAD,
    (_S.EARLY_HEAD, _E.END): _S.EARLY_HEAD,
    (_S.HEAD, _E.END): _S.HEAD,
    # The final head arrives, which determines how the body ends.
    (_S.EARLY_HEAD, _E.FINAL_HEAD): _S.EARLY_BODY,
    (_S.HEAD, _E.FINAL_HEAD): _S.BODY,
    (_S.EARLY_HEAD, _E.FINAL_LAST_HEAD): _S.LAST_BODY,
    (_S.HEAD, _E.FINAL_LAST_HEAD): _S.LAST_BODY,
    (_S.EARLY_HEAD, _E.FINAL_ENDLESS_HEAD): _S.ENDLESS_BODY,
    (_S.HEAD, _E.FINAL_ENDLESS_HEAD): _S.ENDLESS_BODY,
    # The body arrives, if there is one, and ends.
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
    # A response to HEAD ends with its head; the parser may report the end once more.
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
"""The states in which an exchange can begin."""
OVER: Final = frozenset({_S.COMPLETE, _S.SPENT})
"""The states in which the response is complete."""
