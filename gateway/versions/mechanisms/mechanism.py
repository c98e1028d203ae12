"""What the declarations of all mechanisms share."""

from abc import abstractmethod
from collections.abc import Mapping

from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import SectionModel
from gateway.versions.reader import Reader
from gateway.versions.version import Version


class MechanismConfig(SectionModel):
    """A place of the request that names the version."""

    @property
    def default_label(self) -> str | None:
        """Return the version to serve when the request names none."""
        return None

    @abstractmethod
    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> Reader | None:
        """Return the reader, or None if it is of no use; what is wrong goes to `mistakes`.

        Args:
            versions: of the API, by label.
            at: where this declaration stands.
            mistakes: collects what is wrong.
        """


class OptionalMechanismConfig(MechanismConfig):
    """A place that a request may leave out."""

    default: str | None = None
    """The version to serve when a request names none. Without it, default_version of the API
    counts."""

    @property
    def default_label(self) -> str | None:
        """Return the default."""
        return self.default
