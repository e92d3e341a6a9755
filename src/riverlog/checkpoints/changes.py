"""What a request changes: decided on the tree, told as records. Nothing here changes anything by itself.

The chunks of a file that is replaced or deleted become tombstones in the same transaction that lets it go.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from riverlog.checkpoints.paths import ROOT, is_temporary
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
from riverlog.checkpoints.refusals import Refused
from riverlog.checkpoints.tree import File, Folder, Tree
from riverlog.model.limits import CHECKPOINT_FILES_MAX


@dataclass(frozen=True, slots=True)
class Decided:
    """The records to write, the temporary files that are gone then and the one that is there, and the answer."""

    records: tuple[NewRecord, ...] = ()
    forgotten: tuple[str, ...] = ()
    held: tuple[str, File] | None = None
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
    replaced = tree.file(path)
    forgotten = (path,) if replaced is not None and replaced.is_temporary else ()
    return Decided((*_kept(path, facts, content), *_chunks_gone(tree, replaced)), forgotten)


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
    if not moved.is_temporary:
        raise Refused.failed(f"{source} is kept under its name; the checkpoint store renames temporary files alone")
    facts = replace(moved.facts, source=source)
    gone = _chunks_gone(tree, there if isinstance(there, File) else None)
    return Decided((*_kept(destination, facts, moved.content), *gone), (source,))


def was_renamed(tree: Tree, source: str, destination: str) -> bool:
    """Tell whether exactly this was done before."""
    there = tree.file(destination)
    return there is not None and not there.is_temporary and there.facts.source == source != destination


def keep_decided(tree: Tree, path: str, facts: FileFacts, content: bytes) -> Decided:
    """Let the file be there whose batch was decided, whatever was under its name; its temporary one is gone."""
    moved, there = tree.file(facts.source), tree.file(path)
    gone = (*_chunks_gone(tree, there), *_chunks_gone(tree, moved))
    return Decided((*_kept(path, facts, content), *gone), (facts.source,))


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
    forgotten: list[str] = []
    for each_path, each in tree.walk(path):
        if isinstance(each, Folder):
            records += [write_fact(FolderGone(each_path))] if each.made else []
            records += [write_fact(PipelineGone(each_path))] if each_path in tree.pipelines else []
            records += [write_fact(ProgressGone(each_path))] if each_path in tree.progress else []
        else:
            if each.is_temporary:
                forgotten.append(each_path)
            else:
                records.append(write_fact(FileGone(each_path)))
            records += _chunks_gone(tree, each)
    return Decided(tuple(records), tuple(forgotten))


def begin_anew(tree: Tree, path: str, start: tuple[str, FileFacts, bytes] | None) -> Decided:
    """Let all of a checkpoint be gone, and what its query finds instead be there."""
    gone = delete(tree, path, recursive=True)
    return gone if start is None else replace(gone, records=(*gone.records, *_kept(*start)))


def hold(tree: Tree, path: str, file: File, *, overwrite: bool, too_many: Iterable[str]) -> Decided:
    """Let there be a temporary file; the one before it is forgotten, and so are those that are too many."""
    check_create(tree, path, overwrite=overwrite)
    return replace(forget(tree, [path, *too_many]), held=(path, file))


def forget(tree: Tree, paths: Iterable[str]) -> Decided:
    """Let temporary files be gone."""
    found = {path: file for path in paths if (file := tree.file(path)) is not None and file.is_temporary}
    gone = [record for file in found.values() for record in _chunks_gone(tree, file)]
    return Decided(tuple(gone), tuple(found))


def end_upload(file_id: str, chunks: int) -> tuple[NewRecord, ...]:
    """Let go of the chunks of a file that will never be whole."""
    return (*_tombstones(file_id, chunks), write_fact(UploadEnded(file_id)))


def _kept(path: str, facts: FileFacts, content: bytes) -> Iterator[NewRecord]:
    yield write_fact(FileKept(path, facts, content))
    if facts.chunks:
        yield write_fact(UploadEnded(facts.id))


def _chunks_gone(tree: Tree, file: File | None) -> tuple[NewRecord, ...]:
    if file is None or not file.facts.chunks:
        return ()
    tombstones = tuple(_tombstones(file.facts.id, len(file.facts.chunks)))
    return (*tombstones, write_fact(UploadEnded(file.facts.id))) if file.facts.id in tree.uploads else tombstones


def _tombstones(file_id: str, chunks: int) -> Iterator[NewRecord]:
    return (chunk(file_id, index, None) for index in range(chunks))


def _check_count(tree: Tree) -> None:
    if tree.entries >= CHECKPOINT_FILES_MAX:
        raise Refused.failed(f"the checkpoint store has {CHECKPOINT_FILES_MAX:,} files; delete some first")
