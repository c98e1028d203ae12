"""A stand-in for Elasticsearch with the removal of mapping types in version 8.

https://www.elastic.co/guide/en/elasticsearch/reference/8.0/migrating-8.0.html
"""

import json
import re
from typing import Any

from tests.clients.stand_in import Request, Response, StandIn, route

_COMPATIBLE = re.compile(r"application/vnd\.elasticsearch\+(?:x-nd)?json; ?compatible-with=(\d+)")
_SHARDS = {"total": 1, "successful": 1, "failed": 0}


class Elasticsearch(StandIn):
    """Only version 7 has types: in metadata of documents, in bulk requests and in mappings."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version
        self._documents: dict[str, Any] = {"1": {"title": "Größe", "pages": 12345678901234567890}}
        self._mappings: dict[str, Any] = {}

    def answer(self, request: Request) -> Response:
        named = [request.headers.get(field, "") for field in ("accept", "content-type")]
        asked = {found[1] for one in named if (found := _COMPATIBLE.fullmatch(one))}
        if asked - {str(self.version)}:
            return self._error(400, "media_type_header_exception", f"Invalid media-type {named}")
        response = super().answer(request)
        kind = f"application/vnd.elasticsearch+json;compatible-with={self.version}"
        if isinstance(response.body, bytes) and response.body:
            kind = "text/plain; charset=UTF-8"
        body = response.body
        if not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode()
        headers = {"X-elastic-product": "Elasticsearch", "Content-Type": kind}
        return Response(response.status, body, headers)

    @route("GET", "/")
    def info(self, _: Request) -> Response:
        version = {"number": "7.17.0", "build_flavor": "default"}
        return Response(200, {"version": version, "tagline": "You Know, for Search"})

    @route("PUT", "/books")
    def create(self, request: Request) -> Response:
        typed = self._typed(request)
        mappings = request.json()["mappings"]
        if "_doc" in mappings and not typed:
            return self._error(400, "mapper_parsing_exception", "unknown parameter [_doc]")
        self._mappings = mappings["_doc"] if typed else mappings
        return Response(200, {"acknowledged": True, "shards_acknowledged": True, "index": "books"})

    @route("GET", "/books/_mapping")
    def mapping(self, request: Request) -> Response:
        found = {"_doc": self._mappings} if self._typed(request) else self._mappings
        return Response(200, {"books": {"mappings": found}})

    @route("PUT", "/books/_doc/([^/]+)")
    def index(self, request: Request, name: str) -> Response:
        self._documents[name] = request.json()
        return Response(201, {**self._about(name), "result": "created", "_shards": _SHARDS})

    @route("GET", "/books/_doc/([^/]+)")
    def get(self, _: Request, name: str) -> Response:
        if name not in self._documents:
            return Response(404, {**self._about(name), "found": False})
        return Response(200, {**self._about(name), "found": True, "_source": self._documents[name]})

    @route("DELETE", "/books/_doc/([^/]+)")
    def delete(self, _: Request, name: str) -> Response:
        del self._documents[name]
        return Response(200, {**self._about(name), "result": "deleted"})

    @route("POST", "/books/_search")
    def search(self, request: Request) -> Response:
        size = request.json().get("size", 10)
        hits = [
            {**self._about(name), "_score": 1.0, "_source": found}
            for name, found in sorted(self._documents.items())
        ]
        total = {"value": len(hits), "relation": "eq"}
        found = {"total": total, "max_score": 1.0, "hits": hits[:size]}
        return Response(200, {"took": 1, "timed_out": False, "_shards": _SHARDS, "hits": found})

    @route("POST", "(?:/books)?/_bulk")
    def bulk(self, request: Request) -> Response:
        lines = iter([json.loads(line) for line in request.body.splitlines()])
        items = []
        for line in lines:
            ((action, about),) = line.items()
            if "_type" in about and self.version == 8:
                return self._error(400, "illegal_argument_exception", "unknown parameter [_type]")
            if action == "delete":
                self._documents.pop(about["_id"])
            else:
                self._documents[about["_id"]] = next(lines)
            items.append({action: {**self._about(about["_id"]), "status": 200}})
        return Response(200, {"took": 1, "errors": False, "items": items})

    @route("GET", "/_cat/indices")
    def cat(self, _: Request) -> Response:
        return Response(200, b"green open books\n")

    def missing(self, request: Request) -> Response:
        return self._error(404, "index_not_found_exception", f"no such index [{request.path}]")

    def _about(self, name: str) -> dict[str, Any]:
        kind = {"_type": "_doc"} if self.version == 7 else {}
        return {"_index": "books", **kind, "_id": name, "_version": 1}

    def _typed(self, request: Request) -> bool:
        return self.version == 7 and ("include_type_name", "true") in request.query

    def _error(self, status: int, kind: str, reason: str) -> Response:
        return Response(status, {"error": {"type": kind, "reason": reason}, "status": status})
