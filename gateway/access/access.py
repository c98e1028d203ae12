"""The key `access` of gateway.yaml: the proven clients and scopes that requests need."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.access.clients import ClientNaming
from gateway.base.client_names import (
    ASSUMED,
    CREDENTIALS,
    NOBODY,
    Credential,
    Identity,
    Rejection,
)
from gateway.base.errors import Fault, FaultCode, temporary_fault
from gateway.base.mistakes import Mistakes, suggest
from gateway.base.model import ClientName, SectionModel, Some, TextOr, matching
from gateway.base.request import RequestHead
from gateway.base.urls import without_parameter

_Scope = Annotated[
    str,
    matching(
        r"^[!#-\[\]-~]+$",
        "not a scope (RFC 6749, section 3.3); write it without blanks and quotes, as in read:all",
    ),
]


class Access(SectionModel):
    """The clients that may send requests. All others are refused with 401 or 403."""

    by: Some[Credential] | None = None
    """The kinds of credentials that are accepted: api_key, jwt, certificate. Sources of `clients`
    verify them. The default is every kind that they verify."""
    clients: Some[ClientName] | None = None
    """The names of the clients that may send requests. The default is every client with an
    accepted credential."""
    scopes: Some[_Scope] | None = None
    """The scopes that the credential must have, all of them. By default, none is needed."""
    forward: bool = True
    """Whether services get the credential with the request. The default is true."""

    def compile(self, realm: str, naming: ClientNaming | None, mistakes: Mistakes) -> "AccessRule":
        """`realm` is the name of the API, for WWW-Authenticate."""
        verified = {} if naming is None else naming.verified
        by = tuple(verified) if self.by is None else self.by
        for index, kind in enumerate(self.by or ()):
            if kind not in verified:
                text = f"no source of clients verifies this; add {_SOURCES[kind]} to clients.by"
                mistakes.add(text, "by", index)
        if not by:
            mistakes.add(
                "no source of clients verifies a credential, so every request would be refused;"
                f" add one to clients.by, such as {_SOURCES['api_key']}"
            )
        accepted = [kind for kind in verified if kind in by]
        if naming is None:
            return AccessRule(frozenset())
        rule = AccessRule(
            frozenset(accepted),
            None if self.clients is None else frozenset(map(naming.known_as, self.clients)),
            frozenset(self.scopes or ()),
            naming.challenges(realm, accepted),
            naming.vary_of(accepted),
            frozenset[bytes]() if self.forward else naming.fields,
            () if self.forward else naming.parameters,
        )
        _check_reach(self, rule, naming, mistakes)
        return rule


AnyAccess = TextOr[Literal["open"], Access]


def compile_access(
    access: "Access | Literal['open'] | None",
    realm: str | int,
    naming: ClientNaming | None,
    mistakes: Mistakes,
) -> "AccessRule | None":
    if not isinstance(access, Access):
        return None
    return access.compile(str(realm), naming, mistakes.below("access"))


_SOURCES: Mapping[Credential, str] = {
    "api_key": "{ api_key: { header: X-Api-Key, keys: { NAME: KEY } } }",
    "jwt": "{ jwt: { claim: sub, key_file: FILE, algorithms: [RS256] } }",
    "certificate": "{ certificate: subject }",
}


@dataclass(frozen=True, slots=True)
class AccessRule:
    """The compiled `access` of a version at an endpoint.

    Attributes:
        clients: The names of the accepted clients; None accepts every proven client.
        challenges: The values of WWW-Authenticate by the kind of credential.
        vary: The request header fields that contain accepted credentials; `*` for a certificate.
        withheld: The lower-case names of the header fields that services do not get.
        parameters: The names of the query parameters that services do not get.
    """

    by: frozenset[Credential]
    clients: frozenset[str] | None = None
    scopes: frozenset[str] = frozenset()
    challenges: tuple[tuple[Credential, str], ...] = ()
    vary: tuple[str, ...] = ()
    withheld: frozenset[bytes] = frozenset()
    parameters: tuple[str, ...] = ()
    _needed: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_needed", " ".join(sorted(self.scopes)))

    def refusal(self, identity: Identity) -> Fault | None:
        assumed, rejection = identity.proof == ASSUMED, identity.rejection
        # An invalid credential of another kind may be meant for the service.
        invalid = rejection is not None and rejection.credential in self.by
        if invalid or not (assumed or identity.proof in self.by):
            return self._unauthenticated(identity, rejection if invalid else None)
        if self.clients is not None and identity.name not in self.clients:
            detail = "The credential is valid, but its client may not use this resource."
            return Fault(FaultCode.ACCESS_DENIED, detail)
        if not (assumed or self.scopes <= identity.scopes):
            missing = ", ".join(sorted(self.scopes - identity.scopes))
            more = f', error="insufficient_scope", scope="{self._needed}"'
            return Fault(
                FaultCode.INSUFFICIENT_SCOPE,
                f"The credential lacks the scope {missing}.",
                fields=self._fields(identity.proof, more) if identity.proof == "jwt" else (),
            )
        return None

    def __str__(self) -> str:
        clients = "" if self.clients is None else f" of {', '.join(sorted(self.clients))}"
        scopes = f" with the scope {self._needed}" if self.scopes else ""
        return f"needs {self._kinds}{clients}{scopes}"

    @property
    def _kinds(self) -> str:
        return " or ".join(CREDENTIALS[kind] for kind in CREDENTIALS if kind in self.by)

    def _unauthenticated(self, identity: Identity, rejection: Rejection | None) -> Fault:
        more = ""
        if rejection is None:
            given = "none" if identity.proof in (None, ASSUMED) else CREDENTIALS[identity.proof]
            detail = f"This resource needs {self._kinds}, and the request has {given}."
            return Fault(FaultCode.UNAUTHENTICATED, detail, fields=self._fields(None))
        detail = f"The {rejection}."
        if rejection.retry_after is not None:
            return temporary_fault(FaultCode.KEYS_UNAVAILABLE, detail, rejection.retry_after)
        if rejection.credential == "jwt":
            description = _UNSAFE.sub("'", detail)
            more = f', error="invalid_token", error_description="{description}"'
        return Fault(FaultCode.UNAUTHENTICATED, detail, fields=self._fields(None, more))

    def _fields(self, only: Credential | None, bearer: str = "") -> tuple[tuple[bytes, bytes], ...]:
        """Return the WWW-Authenticate lines (RFC 9110, section 11.6.1) for one or all kinds.

        `bearer` has further parameters of the challenge for a token (RFC 6750, section 3).
        """
        return tuple(
            (b"WWW-Authenticate", (text + bearer * (kind == "jwt")).encode())
            for kind, text in self.challenges
            if only in (None, kind)
        )

    def without_credential(self, head: RequestHead) -> RequestHead:
        query = head.query
        for name in self.parameters:
            query = without_parameter(query, name)
        return head if query is head.query else head._replace(query=query)


# The characters that error_description cannot contain (RFC 6750, section 3).
_UNSAFE = re.compile(r"[^ -!#-\[\]-~]")


def _check_reach(access: Access, rule: AccessRule, naming: ClientNaming, at: Mistakes) -> None:
    if "jwt" in rule.by:  # a token may contain any name and any scope
        return
    known = naming.verified.get("api_key") or () if "api_key" in rule.by else ()
    if rule.by and not any(rule.scopes <= each.scopes for each in (*known, NOBODY)):
        at.add("no API key has these scopes; add scopes to a key of clients.by", "scopes")
    names = {each.name for each in known}
    for index, written in enumerate(access.clients or ()):
        if rule.by == {"api_key"} and naming.known_as(written) not in names:
            at.add(f"no API key has this owner; {suggest(written, names)}", "clients", index)
