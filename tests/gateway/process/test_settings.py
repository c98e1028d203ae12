"""Settings from environment variables; errors contain the valid values."""

from pathlib import Path

import pytest

from gateway.process.settings import SettingError, Settings, unknown_variables


def test_unset_or_empty_variables_leave_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()
    assert (
        Settings.from_environment({"GATEWAY_PORT": "", "PORT": "1", "GATEWAY_OTHER": "1"})
        == Settings()
    )


def test_variables_set_the_values() -> None:
    settings = Settings.from_environment(
        {"GATEWAY_PORT": "0", "GATEWAY_WORKERS": "4", "GATEWAY_CONFIG": "a.yaml"}
    )
    assert (settings.port, settings.workers, settings.config) == (0, 4, Path("a.yaml"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("ADMIN_PORT", "http"),
        ("WORKERS", "0"),
        ("WORKERS", "1.5"),
        ("GRACE", "-1"),
        ("GRACE", "86401"),
    ],
)
def test_an_invalid_value_is_refused_with_the_valid_ones(name: str, value: str) -> None:
    right = Settings.model_fields[name.lower()].description
    with pytest.raises(SettingError) as caught:
        Settings.from_environment({f"GATEWAY_{name}": value})
    assert str(caught.value) == f"GATEWAY_{name}={value!r}: must be {right}"


def test_a_port_variable_set_by_kubernetes_is_refused_with_a_hint() -> None:
    with pytest.raises(SettingError, match="Kubernetes set it: write enableServiceLinks: false"):
        Settings.from_environment({"GATEWAY_PORT": "tcp://10.0.0.1:8080"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("GATEWAY_PROT", "did you mean GATEWAY_PORT?"),
        ("GATEWAY_ADMN_PORT", "did you mean GATEWAY_ADMIN_PORT?"),
        ("GATEWAY_CONFIG_FILE", "did you mean GATEWAY_CONFIG?"),
        ("GATEWAY_LOG_LEVEL", "known: GATEWAY_HOST, GATEWAY_PORT, GATEWAY_ADMIN_HOST,"),
    ],
)
def test_an_unknown_variable_gets_a_hint(name: str, hint: str) -> None:
    hints = unknown_variables({"GATEWAY_PORT": "1", "PORT": "2", name: "9000"}, {})
    assert list(hints) == [name]
    assert f"the configuration does not use it; {hint}" in hints[name]


def test_an_unknown_variable_name_that_is_not_utf_8_is_escaped() -> None:
    """The system allows any bytes in names, while the log is UTF-8."""
    hints = unknown_variables({"GATEWAY_PROT\udcff": "1"}, {})
    assert list(hints) == ["GATEWAY_PROT\\udcff"]


def test_variables_of_the_configuration_and_of_service_links_are_not_unknown() -> None:
    linked = {
        "GATEWAY_SERVICE_HOST": "10.0.0.1",
        "GATEWAY_SERVICE_PORT": "8080",
        "GATEWAY_SERVICE_PORT_HTTP": "8080",
        "GATEWAY_PORT": "tcp://10.0.0.1:8080",
        "GATEWAY_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "GATEWAY_PORT_8080_TCP_PROTO": "tcp",
        "GATEWAY_PORT_8080_TCP_ADDR": "10.0.0.1",
        "GATEWAY_METRICS_PORT": "tcp://10.0.0.2:9090",
        "GATEWAY_METRICS_SERVICE_HOST": "10.0.0.2",
        "GATEWAY_ENV_PATH": "/bin",
        "GATEWAY_DB_NAME": "/gateway/db",
    }
    assert unknown_variables({"GATEWAY_STATE": "a.db", **linked}, {"GATEWAY_STATE"}) == {}
