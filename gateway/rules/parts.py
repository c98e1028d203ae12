"""The parts of the conversions of an API."""

from collections.abc import Sequence

from gateway.conversion.declared.conversion import ConversionConfig
from gateway.conversion.declared.groups import GroupConfigs, Part
from gateway.routing.snapshot import Api


def parts_of(api: Api, conversions: Sequence[ConversionConfig], groups: GroupConfigs) -> list[Part]:
    """Return the parts of all conversions of an API, in the order of their declarations."""
    links = {older: iter(declared) for older, declared in api.links.items()}
    return [
        Part(conversion, ("apis", api.name, "conversions", index), next(links[older]), groups)
        for index, conversion in enumerate(conversions)
        for older in (api.versions[conversion.between[0]],)
    ]
