"""The tree: what records add up to."""

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory, StoredFile, Tree
from riverlog.checkpoints.records import (
    FileFacts,
    FileGone,
    FileKept,
    FolderGone,
    FolderMade,
    Unreadable,
    UploadBegun,
    UploadEnded,
)

FACTS = FileFacts("07", 3, 1_000)


@pytest.fixture
def tree() -> Tree:
    tree = Tree()
    for offset, fact in enumerate([FolderMade("/p/offsets"), FileKept("/p/state/0/a", FACTS, b"abc")]):
        tree.apply(fact, offset)
    return tree


def test_a_folder_exists_because_it_was_made_or_something_lies_in_it(tree: Tree) -> None:
    assert isinstance(tree.find("/p/offsets"), StoredDirectory)
    assert isinstance(tree.find("/p/state"), StoredDirectory)
    assert tree.file("/p/state/0/a") == StoredFile(FACTS, 1)
    assert (tree.entries, tree.last_offset) == (5, 1)
    tree.apply(FileGone("/p/state/0/a"), 2)
    assert tree.find("/p/state") is None
    assert isinstance(tree.find("/p"), StoredDirectory)
    tree.apply(FolderGone("/p/offsets"), 3)
    assert tree.find("/p") is None
    assert tree.entries == 0
    assert isinstance(tree.find("/"), StoredDirectory)


def test_what_was_made_stays_while_something_lies_in_it(tree: Tree) -> None:
    tree.apply(FolderMade("/p/state/0"), 2)
    tree.apply(FolderGone("/p/state/0"), 3)
    assert tree.file("/p/state/0/a") is not None
    tree.apply(FileGone("/p/state/0/a"), 4)
    assert tree.find("/p/state") is None


def test_below_a_file_there_is_nothing(tree: Tree) -> None:
    with pytest.raises(RequestRefused, match="/p/state/0/a is a file"):
        tree.check_room("/p/state/0/a/b/c")
    tree.check_room("/p/state/0/a")
    assert tree.find("/p/state/0/a/b") is None
    for fact in (FileKept("/p/state/0/a/b", FACTS, b""), FolderMade("/p/state/0/a"), FileKept("/p", FACTS, b"")):
        with pytest.raises(Unreadable):
            tree.apply(fact, 2)
    assert tree.last_offset == 1
    assert tree.entries == 5


def test_what_is_not_there_can_be_gone(tree: Tree) -> None:
    for fact in (FileGone("/x"), FolderGone("/x"), FolderGone("/"), FileGone("/p"), UploadEnded("1")):
        tree.apply(fact, 2)
    assert tree.entries == 5


def test_walking_gives_the_deepest_first(tree: Tree) -> None:
    assert [path for path, _ in tree.walk("/p")] == ["/p/offsets", "/p/state/0/a", "/p/state/0", "/p/state", "/p"]
    assert list(tree.walk("/x")) == []


def test_uploads_are_known_until_they_end(tree: Tree) -> None:
    tree.apply(UploadBegun("07", 4), 2)
    assert tree.uploads == {"07": 4}
    tree.apply(UploadEnded("07"), 3)
    assert tree.uploads == {}
