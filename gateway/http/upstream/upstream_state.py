"""The states of a connection to a service, and the transitions between them.

Theory of operation
===================

HTTP/1.1, as the gateway uses it, carries one exchange at a time: a request, its response, and then
either the next exchange or the end. The state combines the answers to four questions, which decide
what may follow:

- Has the connection carried an exchange before? A kept connection that ends before a byte of the
  response arrived was most likely closed before the request reached the service; a fresh one that
  ends so is a failure. The difference matters only before the first byte of the response: FRESH,
  SENDING and WAITING have the counterparts KEPT, SENDING_KEPT and WAITING_KEPT.
- Is the request sent? A response may come before its request is complete (RFC 9112, section 9.3).
  A service that answers early may not read the rest, so the connection can be used again only if
  the request is completely sent when the response ends. EARLY_HEAD and EARLY_BODY are HEAD and
  BODY with a request that is still being sent.
- What ends the body? In BODY, a length or the last chunk, and the connection stays open; in
  LAST_BODY, a length or the last chunk, and the connection closes; in ENDLESS_BODY, the end of the
  connection (RFC 9112, section 6.3, rule 8).
- Is it still HTTP? In SWITCHED, bytes of another protocol pass in both directions until the end.
  That begins behind the request: until it is sent, what the client sends is the rest of its body
  (RFC 9110, section 7.8).

Interim responses (RFC 9110, section 15.2) begin and end in HEAD; only a final head leaves it.
Events come from both sides. The gateway causes SEND_ALL, SEND_HEAD, SENT and RELEASE, so an illegal
one is a bug in `UpstreamConnection`. The service causes the others; an illegal one, such as a
second response, violates the protocol and ends the connection.

LOST, the end of the connection, is legal in every state but CLOSED. `AT_END` defines its meaning
for the exchange under way.
"""

from enum import Enum, IntEnum, auto
from typing import Final

from gateway.http.transition_table import TransitionTable


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
TRANSITIONS = TransitionTable[UpstreamState, UpstreamEvent]({**_TRAFFIC, **_LOST})

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
