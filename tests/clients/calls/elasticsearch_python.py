"""Calls Elasticsearch with its client of version 7: `elasticsearch_python.py BASE`."""

import os
import sys
import warnings
from typing import Any

from tests.clients.calls.report import report

# The client then names its version in the media types.
os.environ["ELASTIC_CLIENT_APIVERSIONING"] = "true"
warnings.simplefilter("ignore")

import elasticsearch  # noqa: E402  # it reads the variable when it is imported
from elasticsearch import helpers  # noqa: E402

client: Any = elasticsearch.Elasticsearch(sys.argv[1], max_retries=0)
PROPERTIES = {"properties": {"title": {"type": "text"}}}


def bulk() -> Any:
    actions = [
        {"_index": "books", "_type": "_doc", "_id": "8", "title": "Über\nuns", "index": {"a": 1}},
        {"_index": "books", "_type": "_doc", "_id": "9", "_op_type": "create", "title": "9"},
        {"_index": "books", "_type": "_doc", "_id": "1", "_op_type": "delete"},
    ]
    return list(helpers.streaming_bulk(client, actions))


report(
    {
        "info": client.info,
        "ping": client.ping,
        "create an index": lambda: client.indices.create(
            index="books", body={"mappings": {"_doc": PROPERTIES}}, include_type_name=True
        ),
        "mapping": lambda: client.indices.get_mapping(index="books"),
        "mapping with a type": lambda: client.indices.get_mapping(
            index="books", include_type_name=True
        ),
        "index": lambda: client.index(index="books", id="a b", body={"title": "x", "pages": 1.50}),
        "get": lambda: client.get(index="books", id="1"),
        "get, missing": lambda: client.get(index="books", id="none", ignore=404),
        "exists": lambda: [client.exists(index="books", id=one) for one in ("1", "none")],
        "bulk": bulk,
        "search": lambda: client.search(index="books", body={"size": 2}),
        "delete": lambda: client.delete(index="books", id="8"),
        "cat": lambda: client.cat.indices(),
        "missing index": lambda: client.indices.get(index="none"),
    }
)
