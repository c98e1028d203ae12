"""`cors` in gateway.yaml: the origins whose scripts may read the gateway's own answers."""

import re
from functools import partial

from gateway.base.mistakes import Mistakes
from gateway.base.model import SectionModel, Some
from gateway.routing.cors import ANY_ORIGIN, CorsRules

# As browsers write an origin (RFC 6454, section 6.2; Fetch, section 3.2.1).
_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?\Z", re.ASCII
)
_USUAL_PORTS = ("http", ":80"), ("https", ":443")


class CorsConfig(SectionModel):
    """The scripts in browsers that may read the gateway's own answers."""

    origins: Some[str]
    """The origins of the scripts, such as https://app.example.com, or "*" for all. Name those only
    that the services allow as well."""
    credentials: bool = False
    """Whether scripts may send cookies and client certificates, as they do with `credentials:
    include`. It goes with named origins. The default is false."""


def build_cors(config: CorsConfig, mistakes: Mistakes) -> CorsRules:
    """Return the origins that may read the gateway's own answers; mistakes go to `mistakes`."""
    for index, origin in enumerate(config.origins):
        if origin == ANY_ORIGIN:
            if len(config.origins) > 1:
                mistakes.add("stands for all origins; remove the others", "cors", "origins", index)
            elif config.credentials:
                text = 'no browser takes them from all origins ("*"); name the origins'
                mistakes.add(text, "cors", "credentials")
        else:
            mistakes.attempt(partial(_check, origin), "cors", "origins", index)
    return CorsRules(frozenset(config.origins), config.credentials)


def _check(origin: str) -> None:
    scheme, _, rest = origin.partition("://")
    if not _ORIGIN.match(origin) or any(
        scheme == name and rest.endswith(port) for name, port in _USUAL_PORTS
    ):
        raise ValueError(
            "not an origin as browsers write it; write the scheme, the host in small letters and a"
            " port that is not the usual one, as in https://app.example.com"
        )
