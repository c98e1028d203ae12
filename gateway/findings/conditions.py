"""Tables of the conditions that need attention, and of the answers on retirement.

Action items, notifications and the exit status of `usage --retire` are derived from these tables.
"""

from enum import Enum
from typing import Literal, NamedTuple

from gateway.base.notify import EventKind

Urgency = Literal["now", "soon", "ready"]
Tone = Literal["bad", "warn", "info", "good"]


_MISTAKES, _REPLICAS = "/page/rules#mistakes", "/page/audit#replicas"


class Finding(Enum):
    """The conditions that need attention, most urgent first.

    Attributes:
        kind: the title of the action item.
        tone: the color of the action item on the page.
        action: the remedy, as the label of a button.
        link: the path to which the button leads, or a fragment of the version's view.
        event: the kind of the notification; None if the condition does not cause a notification.
    """

    NOT_READY = "Not ready", "now", "bad", "See the reason", "/readyz"
    RULES_REFUSED = "Rules refused", "now", "bad", "See the mistakes", _MISTAKES, "rules.refused"
    REFUSED_ELSEWHERE = "Rules refused", "now", "bad", "See the replicas", _REPLICAS
    STATE_STALE = "State is stale", "now", "bad", "See the replicas", _REPLICAS, "state.stale"
    CERTIFICATE_EXPIRED = "Certificate expired", "now", "bad", "See the metrics", "/metrics"
    KEYS_NOT_FETCHED = "Keys of tokens", "now", "bad", "See the metrics", "/metrics"
    SERVICE_FAILS = "Service fails", "now", "bad", "See the targets", "/page/rules"
    ROLLED_BACK = "Rolled back", "now", "bad", "See the gates", "#cutover", "cutover.rolled_back"
    GATE_EXCEEDED = "Gate exceeded", "now", "bad", "See the gates", "#cutover"
    TASK_FAILS = "Task fails", "now", "bad", "See the metrics", "/metrics", "task.failed"
    REPLICA_LOST = "Replica lost", "now", "bad", "See the replicas", _REPLICAS, "replica.lost"
    REPLICAS_DIFFER = "Fleet", "now", "warn", "See the replicas", _REPLICAS
    WEBHOOK_FAILS = "Webhook fails", "now", "bad", "See the messages", "/page/audit#notifications"
    SUNSET_THIS_WEEK = "Sunset is near", "now", "bad", "See who calls", "#callers", "sunset.near"
    CERTIFICATE_EXPIRES = "Certificate expires", "soon", "warn", "See the metrics", "/metrics"
    TARGET_FAILS = "Service fails", "soon", "warn", "See the targets", "/page/rules"
    CUTOVER_HELD = "Held", "soon", "warn", "See the gates", "#cutover", "cutover.held"
    GATE_NEAR_LIMIT = "Gate near its limit", "soon", "warn", "See the gates", "#cutover"
    STEP_STUCK = "Step waits", "soon", "warn", "See the gates", "#cutover"
    SUNSET_NEAR = "Sunset is near", "soon", "warn", "See who calls", "#callers", "sunset.near"
    DOCUMENT_UNUSABLE = "Document unusable", "soon", "warn", "See the metrics", "/metrics"
    SCHEMA_VIOLATED = "Schema violated", "soon", "warn", "See the verdict", "#retire"
    CUTOVER_PAUSED = "Cutover paused", "soon", "info", "Clear the cutover", "#cutover"
    BROWNOUTS_PAUSED = "Brownouts paused", "soon", "info", "Resume the brownouts", "#brownouts"
    BROWNOUT_NEAR = "Brownout", "soon", "info", "See the brownouts", "#brownouts"
    RETIRABLE = "Can be retired", "ready", "good", "See the verdict", "#retire", "version.retirable"

    def __init__(
        self,
        kind: str,
        urgency: Urgency,
        tone: Tone,
        action: str,
        link: str,
        event: EventKind | None = None,
    ) -> None:
        self.kind = kind
        self.urgency = urgency
        self.tone = tone
        self.action = action
        self.link = link
        self.event = event


VerdictAnswer = Literal["no", "unknown", "yes"]


class Answer(NamedTuple):
    """An answer: the exit status of the command, and the end of a sentence about the version."""

    status: int
    text: str


ANSWERS: dict[VerdictAnswer, Answer] = {
    "no": Answer(1, "cannot be retired yet"),
    "unknown": Answer(2, "cannot be judged"),
    "yes": Answer(0, "can be retired"),
}
"""The answers to whether a version can be retired. If the reasons differ, the first answer applies.
"""
