"""A source of client names: a place of a request, and the proof of the names in it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gateway.access.key_sets import KeySet
from gateway.base.client_names import Credential, Identity
from gateway.base.request import RequestHead

Certificate = Mapping[str, Any]
"""A verified client certificate, as `ssl.SSLObject.getpeercert` returns it."""

NameReader = Callable[[RequestHead, str, Certificate | None], Identity | str | None]
"""Returns the client, from the head of a request, its peer's address and its certificate.

The result is a text where nothing proves the name, and None where the source has no name. The
address is empty where it is unknown.
"""


class NameSource(NamedTuple):
    """A source of client names, such as a header field.

    Attributes:
        place: The place of the credential in the request, for messages.
        claimed: Whether names from this source are unproven claims of the client.
        challenge: The scheme and the parameters of WWW-Authenticate, without a realm.
    """

    read: NameReader
    credential: Credential | None = None
    place: str = ""
    claimed: bool = False
    field: str | None = None
    parameter: str | None = None
    challenge: tuple[str, str] = ("", "")
    owners: tuple[Identity, ...] | None = None
    key_set: KeySet | None = None
