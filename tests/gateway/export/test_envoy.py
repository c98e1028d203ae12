"""The configuration of Envoy as a whole; `tests/fleet/prove_envoy.py` runs it."""

import re
from collections.abc import Callable

import yaml

from gateway.core.service import Target
from gateway.core.snapshot import Snapshot
from gateway.export.bypass import bypass
from gateway.export.envoy import EnvoyPlace, envoy
from gateway.export.manifest import Object
from tests.gateway.export.rules import rules

PLACE = EnvoyPlace(Target("0.0.0.0", 10000), (Target("g", 8080),), "/dev/stdout")  # noqa: S104


def manager(snapshot: Snapshot) -> Object:
    """Return the settings of the listener."""
    made = yaml.safe_load(envoy(bypass(snapshot), PLACE).text)
    (listener,) = made["static_resources"]["listeners"]
    found: Object = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return found


def removing(snapshot: Snapshot) -> Callable[[str], object]:
    """Return what tells whether a field of a request is removed."""
    (extension,) = manager(snapshot)["early_header_mutation_extensions"]
    (mutation,) = extension["typed_config"]["mutations"]
    pattern = mutation["remove_on_match"]["key_matcher"]["safe_regex"]["regex"]
    return re.compile(pattern).fullmatch


def test_comments_are_what_goes_where() -> None:
    planned = bypass(rules())
    made = envoy(planned, PLACE)
    assert list(made.comments) == planned.lines
    assert made == envoy(bypass(rules()), PLACE)


def test_clusters_are_those_that_are_used() -> None:
    def names(snapshot: Snapshot) -> list[str]:
        clusters = envoy(bypass(snapshot), PLACE).content["static_resources"]["clusters"]
        return [cluster["name"] for cluster in clusters]

    assert names(rules()) == ["version-gateway", "service one", "service two"]
    assert names(rules("bypass: true", "")) == ["version-gateway"]


def test_fields_that_could_be_forged_are_removed() -> None:
    removed = removing(rules())
    for name in ("forwarded", "x-forwarded-port", "x_forwarded_for", "x-shadow"):
        assert removed(name), name
    for name in ("host", "x-forwarded-for", "x-forwarded-host", "x-request-id", "x-shadows"):
        assert not removed(name), name


def test_a_trace_goes_past_the_gateway_as_well() -> None:
    removed = removing(rules("bypass: true", "tracing: { ratio: 0 }"))
    assert not removed("traceparent")
    assert not removed("tracestate")


def test_the_log_names_clients_and_holds_no_query() -> None:
    def members(snapshot: Snapshot) -> Object:
        (log,) = manager(snapshot)["access_log"]
        found: Object = log["typed_config"]["log_format"]["json_format"]
        return found

    plain = members(rules())
    assert plain["path"] == "%PATH(NQ:ORIG_OR_PATH)%"
    assert plain["route"] == "%ROUTE_NAME%"
    assert not {"address", "fields"} & set(plain)
    by = "bypass: true\nclients: { by: [{ header: X-Client }, { address: true }] }"
    named = members(rules("bypass: true", by))
    assert named["fields"] == {"x-client": "%REQ(X-Client)%"}
    assert "address" in named


def test_errors_of_services_are_those_of_the_gateway() -> None:
    mappers = manager(rules())["local_reply_config"]["mappers"]
    codes = {
        each["body_format_override"]["json_format"]["code"]: each["status_code"] for each in mappers
    }
    assert codes == {
        "upstream_unreachable": 502,
        "upstream_protocol": 502,
        "upstream_timeout": 504,
        "upstream_unavailable": 503,
        "overloaded": 503,
    }
