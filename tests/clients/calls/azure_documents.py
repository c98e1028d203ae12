"""Calls Document Intelligence with the client of a version: `azure_documents.py BASE VERSION`."""

import sys
from typing import Any

from azure.core.credentials import AzureKeyCredential

from tests.clients.calls.report import report

BASE, VERSION = sys.argv[1:]
KEY = AzureKeyCredential("key")
FAST = {"polling_interval": 0}
OLDER = VERSION == "2023-07-31"
if OLDER:
    from azure.ai.formrecognizer import DocumentAnalysisClient, DocumentModelAdministrationClient

    client: Any = DocumentAnalysisClient(BASE, KEY, api_version=VERSION, **FAST)
    admin: Any = DocumentModelAdministrationClient(BASE, KEY, api_version=VERSION, **FAST)
else:
    from azure.ai.documentintelligence import (
        DocumentIntelligenceAdministrationClient,
        DocumentIntelligenceClient,
    )

    client = DocumentIntelligenceClient(BASE, KEY, api_version=VERSION, **FAST)
    admin = DocumentIntelligenceAdministrationClient(BASE, KEY, api_version=VERSION, **FAST)


def plain(found: Any) -> Any:
    return found.to_dict() if OLDER else found.as_dict()


def analyze(model: str, **options: Any) -> Any:
    if OLDER:
        return plain(
            client.begin_analyze_document_from_url(model, "http://a/b", **options).result()
        )
    body = {"urlSource": "http://a/b"}
    return plain(client.begin_analyze_document(model, body, **options).result())


def analyze_bytes() -> Any:
    return plain(client.begin_analyze_document("prebuilt-read", b"%PDF-1.7", pages="1-2").result())


def build() -> Any:
    if OLDER:
        options = {"blob_container_url": "http://c", "model_id": "m4"}
        return plain(admin.begin_build_document_model("template", **options).result())
    source = {"containerUrl": "http://c"}
    body = {"modelId": "m4", "buildMode": "template", "azureBlobSource": source}
    return plain(admin.begin_build_document_model(body).result())


def models() -> Any:
    return [plain(one) for one in (admin.list_document_models() if OLDER else admin.list_models())]


def model(name: str) -> Any:
    return plain(admin.get_document_model(name) if OLDER else admin.get_model(name))


FEATURES = ["keyValuePairs", "barcodes"]
calls = {
    "analyze": lambda: analyze("prebuilt-read", locale="de-DE"),
    "analyze bytes": analyze_bytes,
    "analyze with features": lambda: analyze("prebuilt-layout", features=FEATURES),
    "build": build,
    "models": models,
    "model": lambda: model("m2"),
    "missing": lambda: model("none"),
    "delete": lambda: admin.delete_document_model("m1") if OLDER else admin.delete_model("m1"),
    "details": lambda: plain(admin.get_resource_details()),
}
if OLDER:
    calls["retired"] = lambda: analyze("prebuilt-document")
report(calls)
