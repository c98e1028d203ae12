"""A diff of the two folders is the version difference."""

import filecmp
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_only_the_version_and_the_model_differ() -> None:
    v1, v2 = (
        {file.name for file in (ROOT / folder).iterdir() if file.name != "__pycache__"}
        for folder in ("backend_v1", "backend_v2")
    )
    assert v1 == v2
    same, different, unreadable = filecmp.cmpfiles(
        ROOT / "backend_v1", ROOT / "backend_v2", v1, shallow=False
    )
    assert unreadable == []
    assert sorted(different) == ["__init__.py", "model.py"]
    assert "app.py" in same
