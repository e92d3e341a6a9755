"""What a request changes: decided on the tree, expressed as records. Nothing here changes anything by itself.

The chunks of a file that is replaced or deleted become tombstones in the same transaction that deletes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from riverlog.checkpoints.files.paths import ROOT, is_temporary
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory, StoredFile, Tree
from riverlog.checkpoints.limits import CHECKPOINT_FILES_MAX
from riverlog.checkpoints.records import (
    CheckpointRecord,
    FileFacts,
    FileGone,
    FileKept,
    FolderGone,
    FolderMade,
    PipelineGone,
    ProgressGone,
    UploadEnded,
    chunk,
    write_fact,
)


@dataclass(frozen=True, slots=True)
class Change:
    """The records to write, and the answer."""

    records: tuple[CheckpointRecord, ...] = ()
    answer: bool = True


def make_folder(tree: Tree, path: str) -> Change:
    """Create a folder, and all above it."""
    found = tree.find(path)
    if isinstance(found, StoredFile):
        raise RequestRefused.exists(path)
    if isinstance(found, StoredDirectory) and found.made:
        return Change()
    tree.check_room(path)
    _check_count(tree)
    return Change((write_fact(FolderMade(path)),))


def check_create(tree: Tree, path: str, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written here."""
    found = tree.find(path)
    if isinstance(found, StoredDirectory) or (found is not None and not overwrite):
        raise RequestRefused.exists(path)
    tree.check_room(path)
    _check_count(tree)


def keep(tree: Tree, path: str, facts: FileFacts, content: bytes, *, overwrite: bool) -> Change:
    """Keep a file that was uploaded whole."""
    check_create(tree, path, overwrite=overwrite)
    return Change((*_kept(tree, path, facts, content), *_chunks_gone(tree.file(path))))


def rename(tree: Tree, source: str, destination: str, *, overwrite: bool) -> Change:
    """Move a file. To repeat what was done is no mistake; the caller explains `exists` and `missing`."""
    moved, there = tree.find(source), tree.find(destination)
    if was_renamed(tree, source, destination):
        return Change()
    if moved is None:
        raise RequestRefused.missing(source)
    if isinstance(moved, StoredDirectory):
        raise RequestRefused.failed(f"{source} is a folder; the checkpoint store renames files alone")
    if is_temporary(destination):
        raise RequestRefused.failed(
            f"{destination} has the name of a temporary file; nothing is kept under such a name"
        )
    check_create(tree, destination, overwrite=overwrite)
    if not is_temporary(source):
        raise RequestRefused.failed(f"{source} is no temporary file; the checkpoint store renames these alone")
    facts = replace(moved.facts, source=source)
    gone = _chunks_gone(there if isinstance(there, StoredFile) else None)
    return Change((*_kept(tree, destination, facts, moved.content), write_fact(FileGone(source)), *gone))


def was_renamed(tree: Tree, source: str, destination: str) -> bool:
    """Return whether exactly this was done before."""
    there = tree.file(destination)
    return there is not None and there.facts.source == source != destination


def keep_decided(tree: Tree, path: str, facts: FileFacts, content: bytes) -> Change:
    """Keep the file of a batch that was decided, whatever was under its name, and drop its temporary one."""
    forgotten = forget(tree, [facts.source])
    return Change((*_kept(tree, path, facts, content), *_chunks_gone(tree.file(path)), *forgotten.records))


def delete(tree: Tree, path: str, *, recursive: bool) -> Change:
    """Delete a file or folder; the answer is whether there was one."""
    found = tree.find(path)
    if found is None:
        return Change(answer=False)
    if path == ROOT:
        raise RequestRefused.failed("the root is not deleted")
    if isinstance(found, StoredDirectory) and found.children and not recursive:
        raise RequestRefused.not_empty(path)
    records: list[CheckpointRecord] = []
    for each_path, each in tree.walk(path):
        if isinstance(each, StoredDirectory):
            records += [write_fact(FolderGone(each_path))] if each.made else []
            records += [write_fact(PipelineGone(each_path))] if each_path in tree.pipelines else []
            records += [write_fact(ProgressGone(each_path))] if each_path in tree.progress else []
        else:
            records += [write_fact(FileGone(each_path)), *_chunks_gone(each)]
    return Change(tuple(records))


def begin_anew(tree: Tree, path: str, start: tuple[str, FileFacts, bytes] | None) -> Change:
    """Replace all of a checkpoint by what its query is to find instead."""
    gone = delete(tree, path, recursive=True)
    return gone if start is None else replace(gone, records=(*gone.records, *_kept(tree, *start)))


def forget(tree: Tree, paths: Iterable[str]) -> Change:
    """Delete those of these files that are there."""
    found = {path: file for path in paths if (file := tree.file(path)) is not None}
    gone = [record for path, file in found.items() for record in (write_fact(FileGone(path)), *_chunks_gone(file))]
    return Change(tuple(gone))


def end_upload(file_id: str, chunks: int) -> tuple[CheckpointRecord, ...]:
    """Delete the chunks of a file that will never be whole."""
    return (*_tombstones(file_id, chunks), write_fact(UploadEnded(file_id)))


def _kept(tree: Tree, path: str, facts: FileFacts, content: bytes) -> Iterator[CheckpointRecord]:
    yield write_fact(FileKept(path, facts, content))
    if facts.id in tree.uploads:
        yield write_fact(UploadEnded(facts.id))


def _chunks_gone(file: StoredFile | None) -> tuple[CheckpointRecord, ...]:
    return () if file is None else tuple(_tombstones(file.facts.id, len(file.facts.chunks)))


def _tombstones(file_id: str, chunks: int) -> Iterator[CheckpointRecord]:
    return (chunk(file_id, index, None) for index in range(chunks))


def _check_count(tree: Tree) -> None:
    if tree.entries >= CHECKPOINT_FILES_MAX:
        raise RequestRefused.failed(f"the checkpoint store has {CHECKPOINT_FILES_MAX:,} files; delete some first")
