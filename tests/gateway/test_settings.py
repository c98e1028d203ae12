"""Settings come from the environment; what cannot be used is said with what would be right."""

from pathlib import Path

import pytest

from gateway.settings import SettingError, Settings


def test_defaults() -> None:
    assert Settings.from_environment({}) == Settings()
    assert (
        Settings.from_environment({"GATEWAY_PORT": "", "PORT": "1", "GATEWAY_OTHER": "1"})
        == Settings()
    )


def test_values() -> None:
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
def test_what_cannot_be_used(name: str, value: str) -> None:
    right = Settings.model_fields[name.lower()].description
    with pytest.raises(SettingError) as caught:
        Settings.from_environment({f"GATEWAY_{name}": value})
    assert str(caught.value) == f"GATEWAY_{name}={value!r}: must be {right}"
