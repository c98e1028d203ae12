"""What shadows count and report."""

from typing import Protocol


class ShadowCounter(Protocol):
    """The part of `gateway.proxy.recorder.Recorder` that shadows use."""

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        """Increment a counter."""
        ...

    def latency(self, api: str, version: str, old: float, new: float) -> None:
        """Count how long the answers of both services took, in seconds."""
        ...

    @property
    def takes_samples(self) -> bool:
        """Whether another example would be kept."""
        ...

    def sample(
        self, kind: str, api: str, version: str, document: object, request: dict[str, str]
    ) -> None:
        """Report an example for operators, and the request that showed it."""
        ...
