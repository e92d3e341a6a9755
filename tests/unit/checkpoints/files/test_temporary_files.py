"""Temporary files: counted, bounded in bytes, number and age."""

import pytest

from riverlog.checkpoints.files import temporary_files
from riverlog.checkpoints.files.temporary_files import Temporaries


def test_they_are_counted_until_they_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files, "CHECKPOINT_TEMPORARY_BYTES_MAX", 10)
    held = Temporaries()
    for path in ("/p/.1.tmp", "/p/q/.2.tmp"):
        held.note(path, 4, 1_000)
    assert held.bytes == 8
    assert held.fits(2)
    assert not held.fits(3)
    assert held.below("/p/q") == ["/p/q/.2.tmp"]
    held.forget("/p/.1.tmp")
    held.forget("/p/.1.tmp")
    assert held.bytes == 4
    assert held.below("/p") == ["/p/q/.2.tmp"]


def test_before_another_comes_the_oldest_of_too_many_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files, "CHECKPOINT_TEMPORARY_FILES_MAX", 2)
    held = Temporaries()
    held.note("/p/.1.tmp", 4, 1_000)
    assert held.outdated(1_000) == []
    held.note("/p/.2.tmp", 4, 1_000)
    assert held.outdated(1_000) == ["/p/.1.tmp"]


def test_what_nobody_renames_goes_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files, "CHECKPOINT_TEMPORARY_MS_MAX", 100)
    held = Temporaries()
    for number, modified_ms in ((1, 1_000), (2, 1_000), (3, 1_050)):
        held.note(f"/p/.{number}.tmp", 4, modified_ms)
    assert held.outdated(1_100) == []
    assert held.outdated(1_101) == ["/p/.1.tmp", "/p/.2.tmp"]
