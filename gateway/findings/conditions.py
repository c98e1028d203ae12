"""Tables of the conditions that need attention, and of the answers on retirement.

Action items, notifications and the exit status of `usage --retire` are derived from these tables.
"""

from enum import Enum
from typing import Literal, NamedTuple

from gateway.base.notify import EventKind

Urgency = Literal["now", "soon", "step", "ready"]
Tone = Literal["bad", "warn", "info", "good"]


_MISTAKES, _REPLICAS = "/page/rules#mistakes", "/page/audit#replicas"
_MESSAGES, _SERVICES = "/page/audit#notifications", "/page/services"
_SHADOW = "shadow-and-cutover.md#shadow"
# The pages of the documentation about findings, by the kind or the link of the finding.
_HELP = {
    "Certificate expired": "tls.md",
    "Certificate expires": "tls.md",
    "Cut over": "shadow-and-cutover.md#at-100-percent",
    "Document unusable": "verify.md",
    "Keys of tokens": "access.md",
    "Not compared": _SHADOW,
    "Not converted": "convert.md",
    "Not proven": "verify.md",
    "Responses are equal": "shadow-and-cutover.md#shift",
    "Responses differ": _SHADOW,
    "Schema violated": "verify.md",
    "#brownouts": "lifecycle.md#brown-out",
    "#callers": "lifecycle.md#watch",
    "#cutover": "gates.md",
    "#retire": "lifecycle.md",
    "/metrics": "metrics.md",
    "/readyz": "admin-port.md",
    _MESSAGES: "notifications.md",
    _MISTAKES: "configuration.md",
    _REPLICAS: "fleet.md",
    _SERVICES: "services.md",
}


class Finding(Enum):
    """The conditions that need attention, most urgent first.

    Attributes:
        kind: the title of the action item.
        tone: the color of the action item on the page.
        action: the remedy, as the label of a button.
        link: the path to which the button leads, or a fragment of the version's view.
        help: the page of the documentation, with a fragment.
        event: the kind of the notification; None if the condition does not cause a notification.
    """

    NOT_READY = "Not ready", "now", "bad", "See the reason", "/readyz"
    RULES_REFUSED = "Rules refused", "now", "bad", "See the mistakes", _MISTAKES, "rules.refused"
    REFUSED_ELSEWHERE = "Rules refused", "now", "bad", "See the replicas", _REPLICAS
    STATE_STALE = "State is stale", "now", "bad", "See the replicas", _REPLICAS, "state.stale"
    CERTIFICATE_EXPIRED = "Certificate expired", "now", "bad", "See the certificates", _SERVICES
    KEYS_NOT_FETCHED = "Keys of tokens", "now", "bad", "See the metrics", "/metrics"
    SERVICE_FAILS = "Service fails", "now", "bad", "See the targets", _SERVICES
    ROLLED_BACK = "Rolled back", "now", "bad", "See the gates", "#cutover", "cutover.rolled_back"
    GATE_EXCEEDED = "Gate exceeded", "now", "bad", "See the gates", "#cutover"
    TASK_FAILS = "Task fails", "now", "bad", "See the metrics", "/metrics", "task.failed"
    REPLICA_LOST = "Replica lost", "now", "bad", "See the replicas", _REPLICAS, "replica.lost"
    REPLICAS_DIFFER = "Fleet", "now", "warn", "See the replicas", _REPLICAS
    WEBHOOK_FAILS = "Webhook fails", "now", "bad", "See the messages", _MESSAGES
    SUNSET_THIS_WEEK = "Sunset is near", "now", "bad", "See who calls", "#callers", "sunset.near"
    CERTIFICATE_EXPIRES = "Certificate expires", "soon", "warn", "See the certificates", _SERVICES
    TARGET_FAILS = "Service fails", "soon", "warn", "See the targets", _SERVICES
    CUTOVER_HELD = "Held", "soon", "warn", "See the gates", "#cutover", "cutover.held"
    GATE_NEAR_LIMIT = "Gate near its limit", "soon", "warn", "See the gates", "#cutover"
    STEP_STUCK = "Step waits", "soon", "warn", "See the gates", "#cutover"
    SUNSET_NEAR = "Sunset is near", "soon", "warn", "See who calls", "#callers", "sunset.near"
    DOCUMENT_UNUSABLE = "Document unusable", "soon", "warn", "See the metrics", "/metrics"
    SCHEMA_VIOLATED = "Schema violated", "soon", "warn", "See the verdict", "#retire"
    CUTOVER_PAUSED = "Cutover paused", "soon", "info", "Clear the cutover", "#cutover"
    BROWNOUTS_PAUSED = "Brownouts paused", "soon", "info", "Resume the brownouts", "#brownouts"
    BROWNOUT_NEAR = "Brownout", "soon", "info", "See the brownouts", "#brownouts"
    DIFFERS = "Responses differ", "step", "warn", "See the differences", "#shadow"
    CUT_OVER = "Cut over", "step", "good", "See the edit", "#way"
    COMPARED = "Responses are equal", "step", "good", "See the edit", "#way"
    UNCALLED = "No longer called", "step", "good", "See the verdict", "#retire"
    UNCONVERTED = "Not converted", "step", "info", "Write a conversion", "#way"
    UNVERIFIED = "Not proven", "step", "info", "Verify it", "#way"
    UNCOMPARED = "Not compared", "step", "info", "Add a shadow", "#way"
    SHADOWED = "Not compared", "step", "info", "See the shadow", "#shadow"
    ROLLOUT = "Cutover", "step", "info", "See the steps", "#cutover"
    CALLED = "Still called", "step", "info", "See who calls", "#callers"
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
        self.help = _HELP.get(kind) or _HELP[link]
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
