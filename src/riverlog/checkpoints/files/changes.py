"""What a request changes: decided on the tree, told as records. Nothing here changes anything by itself.

The chunks of a file that is replaced or deleted become tombstones in the same transaction that lets it go.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from riverlog.checkpoints.files.paths import ROOT, is_temporary
from riverlog.checkpoints.files.refusals import Refused
from riverlog.checkpoints.files.tree import File, Folder, Tree
from riverlog.checkpoints.limits import CHECKPOINT_FILES_MAX
from riverlog.checkpoints.records import (
    FileFacts,
    FileGone,
    FileKept,
    FolderGone,
    FolderMade,
    NewRecord,
    PipelineGone,
    ProgressGone,
    UploadEnded,
    chunk,
    write_fact,
)


@dataclass(frozen=True, slots=True)
class Decided:
    """The records to write, and the answer."""

    records: tuple[NewRecord, ...] = ()
    answer: bool = True


def make_folder(tree: Tree, path: str) -> Decided:
    """Let there be a folder, and all above it."""
    found = tree.find(path)
    if isinstance(found, File):
        raise Refused.exists(path)
    if isinstance(found, Folder) and found.made:
        return Decided()
    tree.check_room(path)
    _check_count(tree)
    return Decided((write_fact(FolderMade(path)),))


def check_create(tree: Tree, path: str, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written here."""
    found = tree.find(path)
    if isinstance(found, Folder) or (found is not None and not overwrite):
        raise Refused.exists(path)
    tree.check_room(path)
    _check_count(tree)


def keep(tree: Tree, path: str, facts: FileFacts, content: bytes, *, overwrite: bool) -> Decided:
    """Let a file that was uploaded whole be there."""
    check_create(tree, path, overwrite=overwrite)
    return Decided((*_kept(tree, path, facts, content), *_chunks_gone(tree.file(path))))


def rename(tree: Tree, source: str, destination: str, *, overwrite: bool) -> Decided:
    """Move a file. To repeat what was done is no mistake; `exists` and `missing` are for the caller to put in words."""
    moved, there = tree.find(source), tree.find(destination)
    if was_renamed(tree, source, destination):
        return Decided()
    if moved is None:
        raise Refused.missing(source)
    if isinstance(moved, Folder):
        raise Refused.failed(f"{source} is a folder; the checkpoint store renames files alone")
    if is_temporary(destination):
        raise Refused.failed(f"{destination} has the name of a temporary file, and nothing is kept under such a name")
    check_create(tree, destination, overwrite=overwrite)
    if not is_temporary(source):
        raise Refused.failed(f"{source} is kept under its name; the checkpoint store renames temporary files alone")
    facts = replace(moved.facts, source=source)
    gone = _chunks_gone(there if isinstance(there, File) else None)
    return Decided((*_kept(tree, destination, facts, moved.content), write_fact(FileGone(source)), *gone))


def was_renamed(tree: Tree, source: str, destination: str) -> bool:
    """Tell whether exactly this was done before."""
    there = tree.file(destination)
    return there is not None and there.facts.source == source != destination


def keep_decided(tree: Tree, path: str, facts: FileFacts, content: bytes) -> Decided:
    """Let the file be there whose batch was decided, whatever was under its name; its temporary one is gone."""
    forgotten = forget(tree, [facts.source])
    return Decided((*_kept(tree, path, facts, content), *_chunks_gone(tree.file(path)), *forgotten.records))


def delete(tree: Tree, path: str, *, recursive: bool) -> Decided:
    """Let a file or folder be gone; the answer tells whether there was one."""
    found = tree.find(path)
    if found is None:
        return Decided(answer=False)
    if path == ROOT:
        raise Refused.failed("the root is not deleted")
    if isinstance(found, Folder) and found.children and not recursive:
        raise Refused.not_empty(path)
    records: list[NewRecord] = []
    for each_path, each in tree.walk(path):
        if isinstance(each, Folder):
            records += [write_fact(FolderGone(each_path))] if each.made else []
            records += [write_fact(PipelineGone(each_path))] if each_path in tree.pipelines else []
            records += [write_fact(ProgressGone(each_path))] if each_path in tree.progress else []
        else:
            records += [write_fact(FileGone(each_path)), *_chunks_gone(each)]
    return Decided(tuple(records))


def begin_anew(tree: Tree, path: str, start: tuple[str, FileFacts, bytes] | None) -> Decided:
    """Let all of a checkpoint be gone, and what its query finds instead be there."""
    gone = delete(tree, path, recursive=True)
    return gone if start is None else replace(gone, records=(*gone.records, *_kept(tree, *start)))


def forget(tree: Tree, paths: Iterable[str]) -> Decided:
    """Let files be gone, as far as they are there."""
    found = {path: file for path in paths if (file := tree.file(path)) is not None}
    gone = [record for path, file in found.items() for record in (write_fact(FileGone(path)), *_chunks_gone(file))]
    return Decided(tuple(gone))


def end_upload(file_id: str, chunks: int) -> tuple[NewRecord, ...]:
    """Let go of the chunks of a file that will never be whole."""
    return (*_tombstones(file_id, chunks), write_fact(UploadEnded(file_id)))


def _kept(tree: Tree, path: str, facts: FileFacts, content: bytes) -> Iterator[NewRecord]:
    yield write_fact(FileKept(path, facts, content))
    if facts.id in tree.uploads:
        yield write_fact(UploadEnded(facts.id))


def _chunks_gone(file: File | None) -> tuple[NewRecord, ...]:
    return () if file is None else tuple(_tombstones(file.facts.id, len(file.facts.chunks)))


def _tombstones(file_id: str, chunks: int) -> Iterator[NewRecord]:
    return (chunk(file_id, index, None) for index in range(chunks))


def _check_count(tree: Tree) -> None:
    if tree.entries >= CHECKPOINT_FILES_MAX:
        raise Refused.failed(f"the checkpoint store has {CHECKPOINT_FILES_MAX:,} files; delete some first")
