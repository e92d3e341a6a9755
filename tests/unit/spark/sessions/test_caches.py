"""Where sessions keep files of their own."""

import tempfile
from pathlib import Path

import pytest

from riverlog.spark.sessions.caches import caches


def test_the_users_cache_comes_before_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    found = list(caches({"HOME": str(tmp_path / "home")}))
    assert found[0] == tmp_path / "home" / ".cache" / "riverlog"
    assert found[1].parent == tmp_path / "temporary"
    assert all(folder.is_dir() for folder in found)
    assert (
        next(caches({"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})) == tmp_path / "cache/riverlog"
    )


def test_a_cache_that_cannot_be_made_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (found,) = caches({"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert found.name.startswith("riverlog-")
