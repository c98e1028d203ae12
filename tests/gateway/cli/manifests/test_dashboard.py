"""The panels of the dashboard. tests/telemetry runs their queries in Prometheus."""

from gateway.cli.manifests.monitoring import dashboard
from tests.gateway.cli.manifests.test_alerts import PLAIN
from tests.gateway.rules.rules import loaded

FULL = (
    'service: s, brownout: { percent: 1 }, shadow: { via: "2" },'
    ' cutover: { via: "2", percent: 5, sticky_by: request }'
)


def titles(version: str) -> set[str]:
    made = dashboard(loaded(PLAIN.replace("VERSION", version)))
    return {panel["title"] for panel in made["panels"]}


def test_the_dashboard_has_panels_only_for_configured_features() -> None:
    assert titles(FULL) - titles("service: s") == {
        "Refused in brownouts",
        "Paused brownouts",
        "Cutovers",
        "Gates",
        "Responses that differ from their shadow",
    }
    assert titles('via: "2"') - titles("service: s") == {"Converted by version"}


def test_panels_fit_the_grid_and_do_not_overlap() -> None:
    panels = dashboard(loaded(PLAIN.replace("VERSION", FULL)))["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
    assert all(x + 8 <= 24 for x, _ in places)
    assert [panel["id"] for panel in panels] == [*range(1, len(panels) + 1)]


def test_the_dashboard_offers_the_configured_apis() -> None:
    made = dashboard(loaded(PLAIN.replace("VERSION", "service: s")))
    source, apis = made["templating"]["list"]
    assert (source["type"], apis["query"]) == ("datasource", "person")
