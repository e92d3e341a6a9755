"""What requests change, decided on a tree."""

import pytest

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import Tree
from riverlog.checkpoints.records import (
    FileFacts,
    FileGone,
    FileKept,
    FolderGone,
    FolderMade,
    UploadBegun,
    UploadEnded,
    chunk,
    write_fact,
)

SMALL = FileFacts("07", 3, 1_000)
LARGE = FileFacts("08", 9, 1_000, chunks=(4, 5), chunk_bytes=5)
TEMPORARY = "/p/.1.tmp"


@pytest.fixture
def tree() -> Tree:
    tree = Tree()
    facts = [FolderMade("/p"), FileKept("/p/small", SMALL, b"abc"), FileKept("/p/large", LARGE, b"")]
    for offset, fact in enumerate(facts):
        tree.apply(fact, offset)
    tree.apply(FileKept(TEMPORARY, FileFacts("09", 2, 1_000), b"hi"), 3)
    return tree


def test_a_renamed_file_knows_where_it_came_from(tree: Tree) -> None:
    decided = changes.rename(tree, TEMPORARY, "/p/1", overwrite=False)
    kept = FileKept("/p/1", FileFacts("09", 2, 1_000, source=TEMPORARY), b"hi")
    assert decided.records == (write_fact(kept), write_fact(FileGone(TEMPORARY)))
    tree.apply(kept, 4)
    tree.apply(FileGone(TEMPORARY), 5)
    assert changes.rename(tree, TEMPORARY, "/p/1", overwrite=False) == changes.Change()
    with pytest.raises(RequestRefused, match="does not exist"):
        changes.rename(tree, TEMPORARY, "/p/2", overwrite=False)


def test_what_is_replaced_leaves_no_chunks(tree: Tree) -> None:
    with pytest.raises(RequestRefused, match="/p/large already exists"):
        changes.rename(tree, TEMPORARY, "/p/large", overwrite=False)
    gone = (chunk("08", 0, None), chunk("08", 1, None))
    assert changes.rename(tree, TEMPORARY, "/p/large", overwrite=True).records[2:] == gone
    assert changes.keep(tree, "/p/large", SMALL, b"abc", overwrite=True).records[1:] == gone
    assert changes.delete(tree, "/p/large", recursive=False).records == (write_fact(FileGone("/p/large")), *gone)


def test_only_temporary_files_are_renamed_and_none_becomes_one(tree: Tree) -> None:
    for source, destination in (("/p/small", "/p/2"), ("/p", "/q"), (TEMPORARY, "/p/.2.tmp"), (TEMPORARY, TEMPORARY)):
        with pytest.raises(RequestRefused):
            changes.rename(tree, source, destination, overwrite=True)


def test_an_upload_ends_with_its_file_or_without_it(tree: Tree) -> None:
    tree.apply(UploadBegun("0a", 4), 4)
    facts = FileFacts("0a", 9, 1_000, chunks=(6,), chunk_bytes=9)
    kept, ended = FileKept("/p/.2.tmp", facts, b""), write_fact(UploadEnded("0a"))
    assert changes.keep(tree, "/p/.2.tmp", facts, b"", overwrite=True).records == (write_fact(kept), ended)
    tree.apply(kept, 5)
    tree.apply(UploadEnded("0a"), 6)
    assert changes.forget(tree, ["/p/.2.tmp", "/x"]).records == (
        write_fact(FileGone("/p/.2.tmp")),
        chunk("0a", 0, None),
    )
    assert changes.end_upload("0a", 2) == (chunk("0a", 0, None), chunk("0a", 1, None), ended)


def test_a_folder_goes_with_all_that_lies_in_it(tree: Tree) -> None:
    with pytest.raises(RequestRefused, match="not empty"):
        changes.delete(tree, "/p", recursive=False)
    decided = changes.delete(tree, "/p", recursive=True)
    assert decided.answer
    assert write_fact(FileGone(TEMPORARY)) in decided.records
    assert decided.records[-1] == write_fact(FolderGone("/p"))
    assert len(decided.records) == 6
    assert not changes.delete(tree, "/x", recursive=True).answer
    with pytest.raises(RequestRefused, match="the root"):
        changes.delete(tree, "/", recursive=True)


def test_folders_are_made_once_and_not_over_files(tree: Tree) -> None:
    assert changes.make_folder(tree, "/p") == changes.Change()
    assert changes.make_folder(tree, "/p/q").records == (write_fact(FolderMade("/p/q")),)
    with pytest.raises(RequestRefused):
        changes.make_folder(tree, "/p/small")
    with pytest.raises(RequestRefused):
        changes.make_folder(tree, "/p/small/q")


def test_the_number_of_files_is_bounded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "CHECKPOINT_FILES_MAX", tree.entries)
    with pytest.raises(RequestRefused, match="delete some first"):
        changes.keep(tree, "/p/more", SMALL, b"abc", overwrite=True)
    with pytest.raises(RequestRefused, match="delete some first"):
        changes.make_folder(tree, "/p/more")
