"""Temporary files: in the tree, counted, bounded."""

import pytest

from riverlog.checkpoints import temporary
from riverlog.checkpoints.records import FileFacts
from riverlog.checkpoints.temporary import Temporaries
from riverlog.checkpoints.tree import File, Tree


def test_they_are_in_the_tree_until_they_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "CHECKPOINT_TEMPORARY_BYTES_MAX", 10)
    monkeypatch.setattr(temporary, "CHECKPOINT_TEMPORARY_FILES_MAX", 2)
    tree = Tree()
    held = Temporaries(tree)
    assert held.too_many() == []
    for path in ("/p/.1.tmp", "/p/q/.2.tmp"):
        held.put(path, File(FileFacts("07", 4, 0), content=b"four"))
        assert tree.file(path) is not None
    assert held.bytes == 8
    assert held.fits(2)
    assert not held.fits(3)
    assert held.too_many() == ["/p/.1.tmp"]
    assert held.below("/p/q") == ["/p/q/.2.tmp"]
    held.forget("/p/.1.tmp")
    held.forget("/p/.1.tmp")
    assert tree.file("/p/.1.tmp") is None
    assert held.bytes == 4
    assert held.too_many() == []
