"""The quick check of files that the setting `schema` names."""

from pathlib import Path

import pytest

from gateway.base.mistakes import Mistake, Mistakes
from gateway.routing.snapshot import Api
from gateway.verify.schema_files import check_documents
from gateway.versions.version import Version

AT = ("apis", "things", "versions", "1", "schema")


def said(folder: Path, location: str) -> list[Mistake]:
    version, mistakes = Version(1, "1"), Mistakes()
    api = Api("things", {"1": version}, {}, {}, {version: location}, ())
    check_documents([api], folder, mistakes)
    return mistakes.found


@pytest.mark.parametrize(
    "text",
    [
        "openapi: 3.1.0",
        '{"info": {}, "openapi": "3.0.3"}',
        "# a note\n'openapi' : '3.0.0'\n",
        "swagger: '2.0'",
    ],
)
def test_openapi_documents_are_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "v1").write_text(text)
    assert said(tmp_path, "v1") == []


@pytest.mark.parametrize("text", ["", "swagger: '1.2'", "x-openapi: 3.0", "openapi: 4.0.0"])
def test_a_file_that_is_no_openapi_document_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "v1").write_text(text)
    right = "'v1' is not an OpenAPI document; name one: 3.0, 3.1 or Swagger 2.0"
    assert said(tmp_path, "v1") == [Mistake(AT, right)]


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be", "utf-16-le"])
def test_the_refusal_of_a_file_in_utf_16_names_its_encoding(tmp_path: Path, coding: str) -> None:
    (tmp_path / "v1").write_text('{"openapi": "3.1.0"}', encoding=coding)
    assert said(tmp_path, "v1") == [Mistake(AT, "'v1' is in UTF-16; save it as UTF-8")]


@pytest.mark.parametrize("name", ["none.yaml", ".", "a\0b"])
def test_an_unreadable_file_is_refused(tmp_path: Path, name: str) -> None:
    (mistake,) = said(tmp_path, name)
    assert mistake.location == AT
    assert mistake.text.startswith(f"'{name}' cannot be read: ")
    assert mistake.text.endswith("; name a file beside this one, or a URL")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/openapi.json", "https://api.example.com/"])
def test_documents_at_urls_are_not_checked(tmp_path: Path, url: str) -> None:
    assert said(tmp_path, url) == []
