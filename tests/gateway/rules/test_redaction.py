"""Redaction hides secrets in the configuration and leaves everything else unchanged."""

import pytest

from gateway.rules.redaction import redacted

KEY = """\
clients:
  by:
    - jwt:
        key: |
          -----BEGIN KEY-----
          abcdefghijkl
          -----END KEY-----
"""
FIELDS = """\
apis:
  a:
    groups: { g: [ keys: { field: f, values: { a: bcde } } ] }
    conversions: [ changes: [ extract: { key: items }, webhooks: { url: abcd } ] ]
"""
CASES = {
    "API keys": ("keys: { a: s3cret, b: 'two words' }", "keys: { a: (hidden), b: '(hidden)' }"),
    "variables": ("keys: { acme: '${KEY}' }", "keys: { acme: '${KEY}' }"),
    "a variable with a secret default": ("hash: ${SALT:-pepper}", "hash: (hidden)"),
    "a list": ("keys: [ abcd ]", "keys: [ (hidden) ]"),
    "tokens": (
        "tokens: { ann: { right: operate, token: abcd } }",
        "tokens: { ann: { right: operate, token: (hidden) } }",
    ),
    "a URL": ("state: postgresql://me:pass@host/db", "state: postgresql://(hidden)@host/db"),
    "a URL with a mistake": (
        "state: 'postgresql://me:it\"s/a b@host:5432/db' # ask a@b",
        "state: 'postgresql://(hidden)@host:5432/db' # ask a@b",
    ),
    "a URL in a comment": (
        "# state: postgresql://me:pass@host/db",
        "# state: postgresql://(hidden)@host/db",
    ),
    "a comment in a comment": ("a: b # c # token: abcd", "a: b # c # token: (hidden)"),
    "a block": (
        KEY,
        KEY.replace("-----BEGIN KEY-----", "(hidden)")
        .replace("abcdefghijkl", "(hidden)")
        .replace("-----END KEY-----", "(hidden)"),
    ),
    "a public key": ("key: '-----BEGIN PUBLIC KEY-----'",) * 2,
    "no secret": ("path: /v1/person # as it is", "path: /v1/person # as it is"),
    "the name of a change": ("key: { a: bcde }", "key: { a: bcde }"),
    "an alias of itself": ("keys: &a [abcd, *a]", "keys: &a [(hidden), *a]"),
    "keys that are lists": ("? [a, b]\n: c", "? [a, b]\n: c"),
    "a short text": ("token: abc # abc", "token: (hidden) # abc"),
    "no text": ("token:", "token:"),
    "a text that is written otherwise": (
        """token: "s3\\x63ret"\nsecret: 'it''s'\nkey: "two\n  lines" # yes""",
        """token: "(hidden)"\nsecret: '(hidden)'\nkey: "(hidden)\n" # yes""",
    ),
    "a text that also occurs elsewhere": ("token: abcd # abcd", "token: (hidden) # (hidden)"),
    "an alias of a secret": ("a: &a abcd\ntoken: *a", "a: (hidden)\ntoken: *a"),
    "a folded block": ("token: >- # a\n  abcd\n\nb: c", "token: >- # a\n  (hidden)\n\nb: c"),
    "webhooks": (
        "notify: { webhooks: { a: { url: 'https://x/abcd', form: slack, secret: whsec_ab } } }",
        "notify: { webhooks: { a: { url: '(hidden)', form: slack, secret: (hidden) } } }",
    ),
    "a webhook of the environment": ("webhooks: { a: { url: '${U}' } }",) * 2,
    "a part of a webhook": (
        "webhooks: { a: { url: 'https://${U}' } }",
        "webhooks: { a: { url: '(hidden)' } }",
    ),
    "the path of a key": ("admin: { tls: { certificate: a.crt, key: a.key } }",) * 2,
    "fields of changes": (FIELDS, FIELDS),
    "an example of a change": (
        "apis: { a: { conversions: [ { examples: [ { older: { token: abcd } } ] } ] } }",
        "apis: { a: { conversions: [ { examples: [ { older: { token: (hidden) } } ] } ] } }",
    ),
    "an API with the name of a place": (
        "apis: { tls: { key: abcd }, webhooks: { conversions: [ key: bcde ] } }",
        "apis: { tls: { key: (hidden) }, webhooks: { conversions: [ key: bcde ] } }",
    ),
    "a token with the name of a place": (
        "admin: { tokens: { tls: { token: abcd } } }",
        "admin: { tokens: { tls: { token: (hidden) } } }",
    ),
    "webhooks with names of places": (
        "notify: { webhooks: { tls: { url: abcd }, webhooks: { url: bcde } } }",
        "notify: { webhooks: { tls: { url: (hidden) }, webhooks: { url: (hidden) } } }",
    ),
    "other URLs": ("jwt: { url: http://x/y }", "jwt: { url: http://x/y }"),
    "the query of a URL": (
        "state: postgresql://host/db?user=me&password=pass&ssl=on",
        "state: postgresql://host/db?user=me&password=(hidden)&ssl=on",
    ),
    "variables in a URL": ("state: postgresql://${ME}:${PASS}@host/db",) * 2,
    "a variable in a URL": ("state: postgresql://me:${PASS}@host/db",) * 2,
    "a user without a password": ("state: postgresql://me@host/db",) * 2,
    "a token in a URL": ("endpoint: https://abcd@host", "endpoint: https://(hidden)@host"),
    "a password with an @": ("state: postgresql://me:p@ss@h/db", "state: postgresql://(hidden)@h/db"),
    "comments": (
        "a: b # token: s3cret, or url: x\n#   url: https://x/y\n# the key that",
        "a: b # token: (hidden)\n#   url: (hidden)\n# the key that",
    ),
    "a byte order mark": ("\ufeffa: ä\ntoken: abc", "a: ä\ntoken: (hidden)"),
    "nothing": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize(("written", "shown"), CASES.values(), ids=CASES)
def test_literal_secrets_are_hidden_and_all_else_is_unchanged(written: str, shown: str) -> None:
    assert redacted(written.encode()) == shown


def test_a_file_that_is_not_yaml_is_not_returned() -> None:
    assert redacted(b"keys: { acme: s3cret") is None


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a, *a]",
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 99)),
        "#" * 250_000,
        "a: '" + "sql://" * 40_000 + "'",
    ],
    ids=["itself, twice", "each twice the one before", "signs of comments", "databases"],
)
def test_redaction_of_a_malicious_file_is_fast(text: str) -> None:
    """Anyone with the right `read` can send 256 KiB. A naive search would take years for these."""
    assert redacted(text.encode()) == text
