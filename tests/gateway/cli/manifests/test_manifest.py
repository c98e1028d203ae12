"""The YAML text of manifests, which parses to the same objects."""

import yaml
from hypothesis import given, strategies

from gateway.cli.manifests.kubernetes import Manifest, stream


def test_a_stream_has_comments_block_scalars_and_no_aliases() -> None:
    shared = ["x"]
    one = Manifest("one", ("why", ""), {"b": shared, "a": {"text": "1\n2 # 3\n", "same": shared}})
    other = Manifest("two", (), {"port": "8080", "on": "yes", "colon": "a: b"})
    text = stream([one, other])
    assert text == (
        "# why\n#\nb:\n  - x\na:\n  text: |\n    1\n    2 # 3\n  same:\n    - x\n"
        "---\nport: '8080'\n'on': 'yes'\ncolon: 'a: b'\n"
    )
    assert list(yaml.safe_load_all(text)) == [one.content, other.content]


def test_strings_that_kubernetes_would_read_as_other_types_are_quoted() -> None:
    """Kubernetes (go-yaml v2) reads y and n as booleans, and exponents without a dot as numbers."""
    texts = {"y": "N", "a": "1e3", "b": "+1e3", "c": ".5e1", "d": "0o7"}
    text = Manifest("one", (), texts).text
    assert text == "'y': 'N'\na: '1e3'\nb: '+1e3'\nc: '.5e1'\nd: '0o7'\n"
    assert yaml.safe_load(text) == texts


@given(strategies.dictionaries(strategies.text(), strategies.text()))
def test_any_string_is_parsed_back_unchanged(texts: dict[str, str]) -> None:
    assert yaml.safe_load(Manifest("one", (), texts).text) == texts
