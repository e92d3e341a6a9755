"""The archives of Spark's own connector: four, fetched once."""

from pathlib import Path

import pytest

from bench import connector
from bench.trial import NotRun


def test_archives_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = tmp_path / "repository", tmp_path / "cache"
    for artifact, version, _ in connector.ARCHIVES:
        folder = source.joinpath(*artifact.group.split("."), artifact.name, version)
        folder.mkdir(parents=True)
        (folder / f"{artifact.name}-{version}.jar").write_bytes(artifact.name.encode())
    monkeypatch.setenv("MVN_BASE", source.as_uri())
    fetched = connector.archives(cache)
    assert [path.read_bytes().decode() for path in fetched] == [each.artifact.name for each in connector.ARCHIVES]
    monkeypatch.setenv("MVN_BASE", (tmp_path / "gone").as_uri())
    assert connector.archives(cache) == fetched


def test_archives_that_cannot_be_fetched_are_a_reason_not_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVN_BASE", tmp_path.as_uri())
    with pytest.raises(NotRun, match="the archives of Spark's connector cannot be fetched"):
        connector.archives(tmp_path / "cache")
