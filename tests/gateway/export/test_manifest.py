"""The text of manifests: the same for the same objects, and read back as they are."""

import yaml

from gateway.export.manifest import Manifest, stream


def test_a_stream() -> None:
    shared = ["x"]
    one = Manifest("one", ("why", ""), {"b": shared, "a": {"text": "1\n2 # 3\n", "same": shared}})
    other = Manifest("two", (), {"port": "8080", "on": "yes", "colon": "a: b"})
    text = stream([one, other])
    assert text == (
        "# why\n#\nb:\n  - x\na:\n  text: |\n    1\n    2 # 3\n  same:\n    - x\n"
        "---\nport: '8080'\n'on': 'yes'\ncolon: 'a: b'\n"
    )
    assert list(yaml.safe_load_all(text)) == [one.content, other.content]
