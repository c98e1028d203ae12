"""API keys, which prove the names of their owners: `clients.by.api_key` in gateway.yaml.

Only the SHA-256 digests of keys are stored. A key is looked up by its digest in a dictionary, so
the duration of the lookup reveals nothing about the keys.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from math import inf
from time import time
from typing import Annotated, Literal, NamedTuple

import yaml
from multidict import istr
from pydantic import Field, TypeAdapter, ValidationError

from gateway.access.name_source import Certificate, NameSource
from gateway.base.client_names import Identity, Rejection, digest
from gateway.base.dates import format_date, parse_date
from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Mistakes, place
from gateway.base.model import (
    ClientName,
    Date,
    FieldName,
    NonEmptyText,
    OneOrSome,
    Secret,
    SectionModel,
    TextOr,
    matching,
)
from gateway.base.request import RequestHead
from gateway.base.urls import parameter_values

AUTHORIZATION = "Authorization"


class ListedKey(SectionModel):
    """One API key of a client, as plain text or as its digest."""

    key: Secret | None = None
    """The API key. An entry has either this or sha256."""
    sha256: (
        Annotated[
            str,
            matching(
                r"^[0-9A-Fa-f]{64}$",
                "not a SHA-256 digest; write the 64 digits that"
                ' `printf %s "$KEY" | sha256sum` prints',
            ),
        ]
        | None
    ) = None
    """The SHA-256 digest of the API key, as 64 hexadecimal digits."""
    expires: Date | None = None
    """The time from which the API key is refused. Without it, the key does not expire."""
    scopes: tuple[NonEmptyText, ...] = ()
    """The scopes that the API key grants, for `access`. By default, there are none."""


_AnyKey = TextOr[Secret, ListedKey]
_Keys = dict[ClientName, OneOrSome[_AnyKey, _AnyKey]]


class ApiKey(SectionModel):
    """An API key gives the client its name. The key itself is never shown."""

    header: FieldName | None = None
    """The request header that holds the API key. An API key is in one place: a header, the query
    or the Authorization header (basic)."""
    query: NonEmptyText | None = None
    """The query parameter that holds the API key."""
    basic: Literal["username", "password"] | None = None
    """The half of the Basic credentials (RFC 7617) that is the API key."""
    keys: _Keys = Field(default_factory=dict)
    """The API keys by the names of their owners: a key, or a list of keys with their digests and
    expiry, for rotation. The name for an unlisted key is a short hash of it. By default, none is
    listed."""
    keys_file: NonEmptyText | None = None
    """A YAML or JSON file with further API keys, in the form of `keys`. Its path starts from the
    folder of gateway.yaml."""

    @property
    def is_listed(self) -> bool:
        return bool(self.keys) or self.keys_file is not None

    @property
    def field(self) -> str | None:
        return AUTHORIZATION if self.basic else self.header

    @property
    def place(self) -> str:
        return f"the query parameter '{self.query}'" if self.query else f"the {self.field} header"

    def compile(
        self,
        hash_key: bytes,
        files: ConfigFiles,
        shown: Callable[[str], str],
        mistakes: Mistakes,
    ) -> NameSource | None:
        """Return the source of names, or None after a mistake.

        `hash_key` is the key of the hashes that name unlisted keys. `shown` returns the name of a
        client as logs and tables show it.
        """
        if sum(each is not None for each in (self.header, self.query, self.basic)) != 1:
            mistakes.add(
                "an API key is in one place: a header, the query or Basic credentials; write"
                " { header: X-Api-Key }, { query: key } or { basic: password }",
            )
            return None
        listed = [(self.keys, mistakes.below("keys"))]
        if self.keys_file is not None:
            here = mistakes.below("keys_file")
            further = here.attempt(partial(_read_keys, files, self.keys_file))
            listed += [] if further is None else [(further, here)]
        owners: dict[bytes, _OwnedKey] = {}
        for keys, here in listed:
            for owner, key in _owned_keys(keys, shown, here):
                if key.expires <= time():
                    name, end = f"an API key of {key.identity.name}", format_date(key.expires)
                    files.expired_keys.append((name, f"it expired at {end}; remove it"))
                other = owners.setdefault(key.digest, key)
                if other is not key:
                    text = f"has the same key as {other.owner}; one key has one owner"
                    here.add(text if other.owner != owner else "lists a key twice", owner)
        values = partial(_in_query, self.query or "")
        if self.query is None:
            values = partial(_in_header, istr(self.field or ""))
        half = None if self.basic is None else ("username", "password").index(self.basic)
        read = partial(_identify, values, self.place, half, owners, hash_key, self.is_listed)
        if not self.is_listed:
            return NameSource(read, field=self.field, parameter=self.query)
        scheme = "ApiKey", f', in="{"query" if self.query else "header"}"'
        if self.basic is not None:
            scheme = "Basic", ', charset="UTF-8"'
        elif self.header is not None:  # a parameter may contain characters that need quoting
            scheme = "ApiKey", f', in="header", name="{self.header}"'
        known = tuple(key.identity for key in owners.values())
        return NameSource(read, "api_key", self.place, False, self.field, self.query, scheme, known)


class _OwnedKey(NamedTuple):
    digest: bytes
    owner: str
    identity: Identity
    expires: float


def _in_header(name: str, head: RequestHead) -> Sequence[str]:
    return head.fields.getall(name, ())


def _in_query(name: str, head: RequestHead) -> Sequence[str]:
    return parameter_values(head.query, name) if head.query else ()


def _identify(
    values: Callable[[RequestHead], Sequence[str]],
    at: str,
    half: int | None,
    owners: Mapping[bytes, _OwnedKey],
    hash_key: bytes,
    listed: bool,
    head: RequestHead,
    peer: str,
    certificate: Certificate | None,
) -> Identity | str | None:
    found = values(head)
    if not found:
        return None
    text = found[0].strip(" \t")
    if half is not None:
        scheme, _, encoded = text.partition(" ")
        if scheme.lower() != "basic":
            return None
        pair = _basic_pair(encoded)
        if pair is None:
            return _rejected(at, "is not Basic credentials (RFC 7617)")
        text = pair[half]
    if not text:
        return None
    key = owners.get(sha256(text.encode("utf-8", "surrogatepass")).digest())
    if key is not None and len(found) == 1 and time() < key.expires:
        return key.identity
    rejection = None
    if len(found) > 1 and listed:  # the service might read another one
        rejection = Rejection("api_key", at, "occurs more than once")
    if key is None:
        name = digest(text, hash_key)
        if not listed:
            return name
        return Identity(name, rejection=rejection or Rejection("api_key", at, "is unknown"))
    if rejection is None:
        rejection = Rejection("api_key", at, f"expired at {format_date(key.expires)}")
        return Identity(digest(text, hash_key), rejection=rejection)
    return key.identity._replace(rejection=rejection)


def _rejected(at: str, reason: str) -> Identity:
    return Identity(rejection=Rejection("api_key", at, reason))


def _basic_pair(encoded: str) -> tuple[str, str] | None:
    try:
        text = b64decode(encoded.strip(" "), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    username, colon, password = text.partition(":")
    return (username, password) if colon else None


def _owned_keys(
    keys: _Keys, shown: Callable[[str], str], mistakes: Mistakes
) -> Iterator[tuple[str, _OwnedKey]]:
    for owner, given in keys.items():
        for each in given if isinstance(given, tuple) else (given,):
            entry = ListedKey(key=each) if isinstance(each, str) else each
            if (entry.key is None) == (entry.sha256 is None):
                mistakes.add("a key is written either as key or as sha256; write one", owner)
                continue
            if entry.key is None:
                hashed = bytes.fromhex(entry.sha256 or "")
            else:
                hashed = sha256(entry.key.encode("utf-8", "surrogatepass")).digest()
            expires: float | None = inf
            if entry.expires is not None:
                expires = mistakes.attempt(partial(parse_date, entry.expires), owner)
            if expires is not None:
                identity = Identity(shown(owner), "api_key", frozenset(entry.scopes))
                yield owner, _OwnedKey(hashed, owner, identity, expires)


def _read_keys(files: ConfigFiles, written: str) -> _Keys:
    """Return the keys of a file; raises ValueError."""
    try:
        # Every scalar is a text, so that a key of digits and a date stay as they are written.
        data = yaml.load(files.read(written, "keys_file"), yaml.CBaseLoader)  # noqa: S506  # makes strings only
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        text = "is neither YAML nor JSON; write NAME: KEY on each line"
        raise ValueError(f"the file '{written}' {text}") from None
    try:
        return TypeAdapter(_Keys).validate_json(json.dumps(data or {}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        owner = place(first["loc"][:1]) or "its content"
        text = "is not a key or a list of { key or sha256, expires, scopes }"
        raise ValueError(f"the file '{written}': {owner} {text}; correct it") from None
