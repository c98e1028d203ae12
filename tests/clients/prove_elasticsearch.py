"""The official client of Elasticsearch 7 uses a service of version 8."""

from pathlib import Path

from tests.clients.comparison import Client, compare
from tests.clients.elasticsearch_api import Elasticsearch

RULES = Path(__file__).with_name("elasticsearch.yaml").read_text()
CLIENT = Client("elasticsearch_python.py", "elasticsearch-7")


def test_every_call_returns_what_version_7_returns(tmp_path: Path) -> None:
    found = compare(tmp_path, RULES, (Elasticsearch(7), Elasticsearch(8)), CLIENT)
    assert found.raised == {"missing index"}
    assert found.different == {}
    named = [one.headers.get("accept") for one in found.requests]
    assert "application/vnd.elasticsearch+json;compatible-with=8" in named
