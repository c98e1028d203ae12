"""The hash of the module of a Python function that gateway.yaml names."""

from pathlib import Path

import pytest

from gateway.conversion.changes.python import load_function, module_hash


def test_the_hash_of_a_module_does_not_change_after_its_first_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("hash_a", "up = str"), ("hash_b", "up = str"), ("hash_c", "up = int")):
        (tmp_path / f"{name}.py").write_text(text)
        load_function(f"{name}:up")
    assert module_hash("hash_a:up") == module_hash("hash_b:up") != module_hash("hash_c:up")
    # An edit of the file does not change the imported module.
    before = module_hash("hash_a:up")
    (tmp_path / "hash_a.py").write_text("up = int")
    assert module_hash("hash_a:up") == before
    assert module_hash("sys:intern") == ""
