"""The states of a connection to a service, and the transitions between them.

Theory of operation
===================

HTTP/1.1 as the gateway uses it carries one exchange at a time: a request out, one response back,
and then either the next exchange or the end. Four questions decide what may come next, and one
state answers all of them:

- Has the connection carried an exchange before? A kept connection that ends before a byte of the
  response came was most likely closed while the request was on its way, so that the service never
  saw it; a fresh one that ends so is a failure. Only while nothing has come back does this matter:
  FRESH, SENDING and WAITING have their twins KEPT, SENDING_KEPT and WAITING_KEPT.
- Is the request sent? A response may come before its request is complete (RFC 9112, section 9.3).
  A service that answers early does not read the rest, so the connection cannot be used again
  unless the request is sent by the time the response ends. EARLY_HEAD and EARLY_BODY are HEAD and
  BODY with a request that is still being sent.
- What ends the body? In BODY, a length or the last chunk, and the connection stays open; in
  LAST_BODY likewise, and the connection closes; in ENDLESS_BODY, the end of the connection itself
  (RFC 9112, section 6.3, rule 8).
- Is it still HTTP? In SWITCHED, bytes of another protocol pass in both directions until the end.

Interim responses (RFC 9110, section 15.2) begin and end in HEAD: only a final head leaves it.
Events come from both sides. Those of the gateway (SEND_ALL, SEND_HEAD, SENT, RELEASE) are legal
wherever `UpstreamConnection` lets them happen, so an illegal one is a mistake in it. Those of the
service are as the service likes: an illegal one, such as a second response, is a violation of the
protocol that ends the connection.

LOST, the end of the connection, is legal everywhere but at the end. `AT_END` has what it means
for the exchange under way.
"""

from enum import Enum, IntEnum, auto

from gateway.proxy.transition_table import TransitionTable


class UpstreamState(IntEnum):
    """Where a connection to a service stands."""

    FRESH = auto()
    """Open, and never used."""
    KEPT = auto()
    """Open, between two exchanges."""
    SENDING = auto()
    """The first request is being sent; nothing of its response is here."""
    SENDING_KEPT = auto()
    """A further request is being sent; nothing of its response is here."""
    WAITING = auto()
    """The first request is sent; nothing of its response is here."""
    WAITING_KEPT = auto()
    """A further request is sent; nothing of its response is here."""
    EARLY_HEAD = auto()
    """The head of a response is arriving, or one will follow an interim one; not all is sent."""
    HEAD = auto()
    """The head of a response is arriving, or one will follow an interim one; all is sent."""
    EARLY_BODY = auto()
    """The body is arriving; not all is sent; both may still end well."""
    BODY = auto()
    """The body is arriving; after it, the connection can be used again."""
    LAST_BODY = auto()
    """The body is arriving; after it, the connection closes."""
    ENDLESS_BODY = auto()
    """The body is arriving; the end of the connection is its end."""
    SWITCHED = auto()
    """Bytes of another protocol pass in both directions."""
    COMPLETE = auto()
    """The response is complete; the connection can be used again."""
    SPENT = auto()
    """The response is complete; the connection closes."""
    CLOSED = auto()
    """The connection is gone."""


class UpstreamEvent(IntEnum):
    """What happens on a connection to a service."""

    SEND_ALL = auto()
    """A request is sent at once, with its body if it has one."""
    SEND_HEAD = auto()
    """A request is begun; its body follows in pieces."""
    SENT = auto()
    """The last piece of a request's body is sent."""
    BEGIN = auto()
    """The service begins a response, interim or final."""
    FINAL_HEAD = auto()
    """A final head is here, of a response after which the connection can be used again."""
    FINAL_LAST_HEAD = auto()
    """A final head is here, of a response after which the connection closes."""
    FINAL_ENDLESS_HEAD = auto()
    """A final head is here, of a response that the end of the connection ends."""
    SWITCH = auto()
    """The service switches to the protocol that was asked for: 101."""
    PIECE = auto()
    """A piece of the body is here."""
    CLOSING = auto()
    """A trailer field says something of the connection, which may be that the service closes it."""
    END = auto()
    """A response, interim or final, ends."""
    RELEASE = auto()
    """The exchange is over, and the connection is free for another one."""
    LOST = auto()
    """The connection has ended."""


class ConnectionEnd(Enum):
    """What the end of a connection means for the exchange under way."""

    NOTHING = auto()
    """None is under way."""
    UNREACHABLE = auto()
    """The service closed a fresh connection without a response."""
    STALE = auto()
    """The service closed a kept connection, most likely before it saw the request."""
    BROKEN = auto()
    """The response broke off."""
    END = auto()
    """The response is complete, unless the connection ended with an error."""


_S, _E = UpstreamState, UpstreamEvent
_Rows = dict[tuple[UpstreamState, UpstreamEvent], UpstreamState]
_TRAFFIC: _Rows = {
    # The request goes out.
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
    (_S.SWITCHED, _E.SENT): _S.SWITCHED,
    # The response begins, with interim ones before it.
    (_S.SENDING, _E.BEGIN): _S.EARLY_HEAD,
    (_S.SENDING_KEPT, _E.BEGIN): _S.EARLY_HEAD,
    (_S.WAITING, _E.BEGIN): _S.HEAD,
    (_S.WAITING_KEPT, _E.BEGIN): _S.HEAD,
    (_S.EARLY_HEAD, _E.BEGIN): _S.EARLY_HEAD,
    (_S.HEAD, _E.BEGIN): _S.HEAD,
    (_S.EARLY_HEAD, _E.END): _S.EARLY_HEAD,
    (_S.HEAD, _E.END): _S.HEAD,
    # Its final head is here, which says how the body ends.
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
    # A response to HEAD ends with its head; the parser, which cannot know, may end it once more.
    (_S.COMPLETE, _E.END): _S.COMPLETE,
    (_S.SPENT, _E.END): _S.SPENT,
    (_S.COMPLETE, _E.RELEASE): _S.KEPT,
    # 101 is an interim response that nothing of HTTP follows.
    (_S.EARLY_HEAD, _E.SWITCH): _S.SWITCHED,
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
FREE = frozenset({_S.FRESH, _S.KEPT})
"""The states in which an exchange can begin."""
OVER = frozenset({_S.COMPLETE, _S.SPENT})
"""The states in which the response is complete."""
