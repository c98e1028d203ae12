"""An operator of a gateway without traffic, and its admin port."""

from collections.abc import Callable, Mapping
from pathlib import Path

from aiohttp import web

from gateway.admin.admin_app import Load, admin_app
from gateway.admin.api import AdminApi
from gateway.admin.metrics import Metrics
from gateway.admin.page.page_app import Page
from gateway.findings.operator import Operator
from gateway.process.reloader import Reloader
from gateway.store.local import LocalState
from gateway.store.state import Membership
from gateway.verify.live.documented_operations import DocumentedOperations
from tests.gateway.documents import LocalDocuments
from tests.gateway.kit import rules

MakeOperator = Callable[[str], Operator]


def make_operator(folder: Path, text: str) -> Operator:
    path = folder / "gateway.yaml"
    brownout = '"2": { service: s, brownout: { percent: 100 } }'
    path.write_text(text + rules(1).replace('"2": { service: s }', brownout))
    reloader = Reloader(path, {})
    state = LocalState(Membership("a", lambda: reloader.latest, lambda: "hash"))
    documented = DocumentedOperations(LocalDocuments(folder))
    return Operator(state, reloader, lambda: 1, lambda: None, documented)


PARTS: Mapping[str, Load] = {
    "metrics": lambda: Metrics,
    "api": lambda: AdminApi,
    "page": lambda: Page,
}
"""The parts of the admin port, for `admin_app`."""


def admin_of(operator: Operator) -> web.Application:
    return admin_app(operator, PARTS)
