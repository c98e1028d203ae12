"""Written secrets: what the schema marks, and passwords in URLs, unless a variable has them."""

import pytest

from gateway.rules.document import read
from gateway.rules.redaction import comment_lines, secret_lines
from gateway.rules.root import Config

KEY = """\
clients:
  by:
    - jwt:
        key: |
          -----BEGIN {0}KEY-----
          abcdefghijkl
          -----END {0}KEY-----
"""
WRITTEN = {
    "an API key": "clients: { by: [ { api_key: { keys: { a: s3cret } } } ] }",
    "the key of a token": KEY.format(""),
    "what hashes names": "clients: { hash: pepper }",
    "a default": "clients: { hash: '${SALT:-pepper}' }",
    "a default where it is unset alone": "clients: { hash: '${SALT-pepper}' }",
    "a part of it": "clients: { hash: 'salt and ${SALT}' }",
    "a token": "admin: { tokens: { ann: { right: read, token: abcd } } }",
    "a webhook": "notify: { webhooks: { a: { url: 'https://x/abcd' } } }",
    "a part of a webhook": "notify: { webhooks: { a: { url: 'https://${U}/abcd' } } }",
    "the key of a webhook": "notify: { webhooks: { a: { url: '${U}', secret: whsec_ab } } }",
    "the password of a database": "state: postgresql://me:pass@host/db",
    "a password by default": "state: 'postgresql://${ME}:${PASS:-pass}@host/db'",
    "a password in the query": "state: postgresql://host/db?user=me&password=pass&ssl=on",
    "a token in a URL": "apis: { a: { versions: { '1': { schema: 'https://abcd@host/v1' } } } }",
    "a key in a URL": "apis: { a: { versions: { '1': { schema: 'https://host/v1?api_key=a' } } } }",
}  # fmt: skip
CLEAN = {
    "variables": "clients: { hash: '${SALT}' }",
    "an empty default": "notify: { webhooks: { a: { url: '${U:-}' } } }",
    "another variable by default": "notify: { webhooks: { a: { url: '${U:-${V}}' } } }",
    "a public key": KEY.format("PUBLIC "),
    "a password of the environment": "state: 'postgresql://me:${PASS}@host/db'",
    "it has an empty default": "state: 'postgresql://me:${PASS:-}@host/db'",
    "it is in the query": "state: 'postgresql://host/db?password=${PASS}'",
    "a user without a password": "state: postgresql://me@host/db",
    "the path of a key": "admin: { tls: { certificate: a.crt, key: a.key } }",
    "a capture": "apis: { a: { upstream_path: '/items?key={id}' } }",
    "fields of that name": "apis: { a: { versions: { '1': { errors: { body: { key: abc } } } } } }",
    "keys that no schema has": "token: abcd",
    "a number, and nothing": "workers: 4\nstate:",
    "nothing": "",
}  # fmt: skip
SET = {"SALT": "abcd", "U": "https://abcd", "V": "", "ME": "me", "PASS": "pass"}
SCHEMA = Config.model_json_schema()


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("unset", [(), ("SALT", "PASS")], ids=["set", "unset"])
def test_what_is_written_out(text: str, unset: tuple[str, ...]) -> None:
    environment = {name: value for name, value in SET.items() if name not in unset}
    text = text.replace("${SALT}", "${V}")
    line = 4 if "BEGIN" in text else 1
    assert secret_lines(read(text.encode(), "rules", environment), SCHEMA) == [line]


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN)
def test_what_is_not(text: str) -> None:
    assert secret_lines(read(text.encode(), "rules", SET), SCHEMA) == []


def test_each_line_once() -> None:
    text = "clients:\n  hash: abcd\n  by: [ { api_key: { keys: { a: a, b: b } } } ]\n"
    assert secret_lines(read(text.encode(), "rules", SET), SCHEMA) == [2, 3]


def test_comments_that_may_hold_secrets() -> None:
    """Nobody can tell; what is a word in a sentence is left out."""
    lines = [
        "# token: s3cret",
        "a: b # the key that",
        "a: b # c # state: postgresql://me:pass@host/db",
        "# GET /v1/person?token=abc",
        "url: https://x/y",
    ]
    assert comment_lines("\n".join(lines)) == [1, 3, 4]
