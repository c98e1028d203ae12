"""A stand-in for Document Intelligence of Azure, with its versions 2023-07-31 and 2024-11-30."""

from typing import Any

from tests.clients.stand_in import Request, Response, StandIn, route

OLDER, NEWER = "2023-07-31", "2024-11-30"
_PREFIXES = {OLDER: "/formrecognizer", NEWER: "/documentintelligence"}
_AT = r"/(?:formrecognizer|documentintelligence)"
_CREATED = "2026-01-02T03:04:05Z"


class DocumentIntelligence(StandIn):
    """Serves the given versions. Each operation is running at the first poll."""

    def __init__(self, *versions: str) -> None:
        super().__init__()
        self._versions = versions
        self._models = {"m1": "First", "m2": "Zweites Mödell", "m3": ""}
        self._polls: dict[str, int] = {}

    def answer(self, request: Request) -> Response:
        version = dict(request.query).get("api-version", "")
        if version not in self._versions or not request.path.startswith(_PREFIXES[version]):
            return _error(404, "Resource not found")
        return super().answer(request)

    @route("POST", _AT + "/documentModels/([^/:]+):analyze")
    def analyze(self, request: Request, model: str) -> Response:
        retired = ("prebuilt-document", "prebuilt-businessCard")
        if _version(request) == NEWER and model in retired:
            return _error(404, "The requested model was not found.")
        # The result repeats the parameters, so that a test sees them.
        asked = [pair for pair in request.query if pair[0] != "api-version"]
        self._asked = asked, request.headers["content-type"], request.body.decode()
        return self._accepted(request, f"/documentModels/{model}/analyzeResults/r1")

    @route("GET", _AT + "/documentModels/([^/:]+)/analyzeResults/r1")
    def result(self, request: Request, model: str) -> Response:
        result = {
            "apiVersion": _version(request),
            "modelId": model,
            "stringIndexType": "unicodeCodePoint",
            "content": repr(self._asked),
            "pages": [],
            "keyValuePairs": [{"key": {"content": "Größe", "spans": []}, "confidence": 0.50}],
        }
        dates = {"createdDateTime": _CREATED, "lastUpdatedDateTime": _CREATED}
        return self._polled(request, dates, {"analyzeResult": result})

    @route("POST", _AT + "/documentModels:build")
    def build(self, request: Request) -> Response:
        self._models[request.json()["modelId"]] = request.json()["buildMode"]
        return self._accepted(request, "/operations/31_1")

    @route("GET", _AT + "/operations/31_1")
    def operation(self, request: Request) -> Response:
        location = _url(request, "/documentModels/m4")
        fields = {
            "operationId": "31_1",
            "kind": "documentModelBuild",
            "createdDateTime": _CREATED,
            "lastUpdatedDateTime": _CREATED,
            "percentCompleted": 100,
            "resourceLocation": location,
            "apiVersion": _version(request),
        }
        return self._polled(request, fields, {"result": self._model(request, "m4")})

    @route("GET", _AT + "/documentModels")
    def models(self, request: Request) -> Response:
        found, start = sorted(self._models), int(dict(request.query).get("skip", 0))
        page: dict[str, Any] = {"value": [self._model(request, one) for one in found[start:][:2]]}
        if start + 2 < len(found):
            page["nextLink"] = f"{request.base}{request.target}&skip={start + 2}"
        return Response(200, page)

    @route("GET", _AT + "/documentModels/([^/:]+)")
    def model(self, request: Request, name: str) -> Response:
        if name not in self._models:
            return _error(404, "The requested model was not found.")
        return Response(200, self._model(request, name))

    @route("DELETE", _AT + "/documentModels/([^/:]+)")
    def delete(self, _: Request, name: str) -> Response:
        del self._models[name]
        return Response(204)

    @route("GET", _AT + "/info")
    def info(self, request: Request) -> Response:
        body: dict[str, Any] = {"customDocumentModels": {"count": 3, "limit": 20000}}
        if _version(request) == OLDER:
            reset = {"quotaResetDateTime": "1970-01-01T00:00:00Z"}
            body["customNeuralDocumentModelBuilds"] = {"used": 0, "quota": 0, **reset}
        return Response(200, body)

    def missing(self, request: Request) -> Response:
        return _error(404, "Resource not found")

    def _model(self, request: Request, name: str) -> dict[str, Any]:
        return {
            "modelId": name,
            "description": self._models[name],
            "createdDateTime": _CREATED,
            "apiVersion": _version(request),
        }

    def _accepted(self, request: Request, path: str) -> Response:
        self._polls[path] = 0
        fields = {"Operation-Location": _url(request, path), "Retry-After": "0"}
        return Response(202, headers=fields)

    def _polled(self, request: Request, fields: dict[str, Any], done: dict[str, Any]) -> Response:
        path = request.path.removeprefix(_PREFIXES[_version(request)])
        self._polls[path] += 1
        if self._polls[path] == 1:
            return Response(200, {"status": "running", **fields}, {"Retry-After": "0"})
        return Response(200, {"status": "succeeded", **fields, **done})


def _version(request: Request) -> str:
    return dict(request.query)["api-version"]


def _url(request: Request, path: str) -> str:
    version = _version(request)
    return f"{request.base}{_PREFIXES[version]}{path}?api-version={version}"


def _error(status: int, message: str) -> Response:
    error = {"code": "NotFound", "message": message, "innererror": {"code": "ModelNotFound"}}
    return Response(status, {"error": error}, {"x-ms-error-code": "NotFound"})
