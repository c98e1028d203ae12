"""The shares of the file descriptors that a process may open."""

import resource

import pytest

from gateway import descriptors


@pytest.mark.parametrize(
    ("soft", "clients", "admin"),
    [(1_000_000, 499_712, 256), (1024, 416, 64), (256, 80, 16), (66, 1, 4), (10, 1, 1)],
)
def test_each_has_a_share(
    monkeypatch: pytest.MonkeyPatch, soft: int, clients: int, admin: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, 4096))
    assert (descriptors.most_clients(), descriptors.most_admin()) == (clients, admin)


def test_the_limit_is_raised_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    descriptors.raise_limit()
    assert limits == {resource.RLIMIT_NOFILE: (4096, 4096)}
