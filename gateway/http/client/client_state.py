"""The states of a client's connection, and the transitions between them.

Theory of operation
===================

Two activities run on a client's connection at a time: the parser processes received bytes, and the
connection's task answers the parsed requests one after the other. A client may pipeline requests
(RFC 9112, section 9.3.2); they wait in a bounded queue. The state is the state of the task, since
deadlines, shutdowns and lost connections depend on it:

- While no request waits, received bytes belong to the next head: the first byte changes IDLE to
  HEAD, and the last byte, or one that is not HTTP, to ASKED. IDLE and HEAD have separate timeouts.
- ANSWERING begins when the task takes a request from the queue, and ends with ANSWERED when the
  response is written and the request body is read to its end. If a further request waits already,
  IDLE changes to ASKED at once.
- A shutdown ends a connection after the answer that is under way or due: LAST_ASKED and LAST are
  ASKED and ANSWERING with no request to follow.
- In TUNNEL, bytes of another protocol pass in both directions; no HTTP follows.
- In ENDING, no further request is answered, and received bytes are dropped until the transport is
  closed.

All events come from `ClientConnection` and its base `RequestReceiver`, so an illegal one is a bug
in these.
"""

from enum import IntEnum, auto

from gateway.http.transition_table import TransitionTable


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
    # Its task has not ended yet: an answer was under way when the client left.
    (_S.CLOSED, _E.FINISH): _S.CLOSED,
}
_LOST: _Rows = {(state, _E.LOST): _S.CLOSED for state in _S if state is not _S.CLOSED}
TRANSITIONS = TransitionTable[ClientState, ClientEvent]({**_REQUESTS, **_SHUTDOWN, **_LOST})

BETWEEN = frozenset({_S.IDLE, _S.HEAD})
"""The states in which received bytes belong to the next head."""
