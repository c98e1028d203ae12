"""Official clients of Azure use Document Intelligence through the gateway."""

from pathlib import Path

from tests.clients.azure_api import NEWER, OLDER, DocumentIntelligence
from tests.clients.comparison import Client, compare

RULES = Path(__file__).with_name("azure.yaml").read_text()
CLIENT = Client("azure_documents.py")


def test_every_call_of_form_recognizer_returns_the_result_of_its_version(tmp_path: Path) -> None:
    services = DocumentIntelligence(OLDER), DocumentIntelligence(NEWER)
    found = compare(tmp_path, RULES, services, CLIENT, OLDER)
    assert found.raised == {"missing"}
    assert all(one.path.startswith("/documentintelligence/") for one in found.requests)
    # The retired model became a feature of another model, which the result names.
    assert found.different.keys() == {"retired"}
    assert found.different["retired"]["model_id"] == "prebuilt-layout"
    assert found.different["retired"]["api_version"] == OLDER


def test_a_client_of_the_newer_version_is_not_converted(tmp_path: Path) -> None:
    services = DocumentIntelligence(OLDER, NEWER), DocumentIntelligence(OLDER, NEWER)
    found = compare(tmp_path, RULES, services, CLIENT, NEWER)
    assert found.raised == {"missing"}
    assert found.different == {}
    assert found.altered == set()
