"""How many clients the file descriptors are enough for."""

import resource

import pytest

from gateway.proxy.client import client_totals


@pytest.mark.parametrize(("soft", "clients"), [(1024, 480), (256, 96), (66, 1), (10, 1)])
def test_each_client_has_two(monkeypatch: pytest.MonkeyPatch, soft: int, clients: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, 4096))
    assert client_totals.most_clients() == clients


def test_the_limit_is_raised_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    client_totals.raise_limit()
    assert limits == {resource.RLIMIT_NOFILE: (4096, 4096)}
