"""The states of a client's connection, and the transitions between them.

Theory of operation
===================

Two things happen on a client's connection at a time: the parser takes bytes as they come, and the
connection's task answers the requests that the parser found, one after the other. A client may
send requests ahead (RFC 9112, section 9.3.2); they wait in a bounded queue. So the state is that
of the task, which is what a deadline, a shutdown and a lost connection have to go by:

- While no request waits, the bytes that come belong to the next head: IDLE becomes HEAD with the
  first of them, and ASKED with the last, or with one that is no HTTP. Each has its own clock.
- ANSWERING begins when the task takes a request from the queue, and ends with ANSWERED when its
  response is written and its body is read to the end. Where a further request waits already, IDLE
  is left again at once.
- A shutdown ends a connection after the answer that is under way, or due: LAST_ASKED and LAST are
  ASKED and ANSWERING with no request to follow.
- In TUNNEL, bytes of another protocol pass in both directions; no HTTP comes behind them.
- ENDING is the way out: all is said, and what still comes is dropped until the transport is gone.

All events come from `ClientConnection`, so an illegal one is a mistake in it.
"""

from enum import IntEnum, auto

from gateway.proxy.transition_table import TransitionTable


class ClientState(IntEnum):
    """Where a client's connection stands."""

    IDLE = auto()
    """No request is under way, and no byte of the next one is here."""
    HEAD = auto()
    """A part of a request's head is here."""
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
    """Nothing more is answered; the connection closes."""
    CLOSED = auto()
    """The connection is gone."""


class ClientEvent(IntEnum):
    """What happens on a client's connection."""

    BYTES = auto()
    """Bytes of a head came, and not its end."""
    REQUEST = auto()
    """A request is there to be answered, were it one that cannot be read."""
    TAKE = auto()
    """The task begins to answer a request."""
    SWITCH = auto()
    """The response switches to another protocol: 101."""
    ANSWERED = auto()
    """A request is answered, and another can follow."""
    LAST_ANSWERED = auto()
    """A request is answered, and none can follow."""
    REFUSE = auto()
    """The client is too slow with a request, or one client too many."""
    FINISH = auto()
    """The gateway shuts down."""
    LOST = auto()
    """The connection has ended."""


_S, _E = ClientState, ClientEvent
_Rows = dict[tuple[ClientState, ClientEvent], ClientState]
_REQUESTS: _Rows = {
    (_S.IDLE, _E.BYTES): _S.HEAD,
    (_S.HEAD, _E.BYTES): _S.HEAD,
    (_S.IDLE, _E.REQUEST): _S.ASKED,
    (_S.HEAD, _E.REQUEST): _S.ASKED,
    (_S.ASKED, _E.TAKE): _S.ANSWERING,
    (_S.LAST_ASKED, _E.TAKE): _S.LAST,
    (_S.ANSWERING, _E.SWITCH): _S.TUNNEL,
    (_S.LAST, _E.SWITCH): _S.TUNNEL,
    (_S.ANSWERING, _E.ANSWERED): _S.IDLE,
    (_S.LAST, _E.ANSWERED): _S.ENDING,
    (_S.ANSWERING, _E.LAST_ANSWERED): _S.ENDING,
    (_S.LAST, _E.LAST_ANSWERED): _S.ENDING,
    (_S.TUNNEL, _E.LAST_ANSWERED): _S.ENDING,
    (_S.IDLE, _E.REFUSE): _S.ENDING,
    (_S.HEAD, _E.REFUSE): _S.ENDING,
}
_SHUTDOWN: _Rows = {
    (_S.IDLE, _E.FINISH): _S.ENDING,
    (_S.HEAD, _E.FINISH): _S.ENDING,
    (_S.ASKED, _E.FINISH): _S.LAST_ASKED,
    (_S.LAST_ASKED, _E.FINISH): _S.LAST_ASKED,
    (_S.ANSWERING, _E.FINISH): _S.LAST,
    (_S.LAST, _E.FINISH): _S.LAST,
    (_S.TUNNEL, _E.FINISH): _S.TUNNEL,
    (_S.ENDING, _E.FINISH): _S.ENDING,
}
_LOST: _Rows = {(state, _E.LOST): _S.CLOSED for state in _S if state is not _S.CLOSED}
TRANSITIONS = TransitionTable[ClientState, ClientEvent]({**_REQUESTS, **_SHUTDOWN, **_LOST})

BETWEEN = frozenset({_S.IDLE, _S.HEAD})
"""The states in which the bytes that come belong to the next head."""
