"""The tree of files: what the records of the topic add up to.

`apply` is the only place where kept state changes; the same records in the same order give the same tree. A folder
exists because it was made, or because something lies in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from riverlog.checkpoints.files.paths import ROOT, check_path, is_temporary, names_of
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.temporary_files import Temporaries
from riverlog.checkpoints.pipelines.pipeline import PipelineState, read_pipeline
from riverlog.checkpoints.pipelines.runs import Runs, read_runs
from riverlog.checkpoints.records import (
    Fact,
    FileFacts,
    FileGone,
    FileKept,
    FolderGone,
    FolderMade,
    PipelineGone,
    PipelineNoted,
    ProgressGone,
    ProgressNoted,
    Unreadable,
    UploadBegun,
    UploadEnded,
)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file, kept in the topic."""

    facts: FileFacts
    offset: int
    """Where its record is."""
    content: bytes = b""
    """Of a temporary file that is small, for its RENAME; everything else is read from the topic."""


@dataclass(slots=True)
class StoredDirectory:
    """A folder, with what lies in it by name."""

    children: "dict[str, StoredFile | StoredDirectory]" = field(default_factory=dict)
    made: bool = False
    """Whether it stays when it is empty."""


class Tree:
    """All files and folders, the uploads that have not ended, the pipelines, and the progress of queries."""

    def __init__(self) -> None:
        self.uploads: dict[str, int] = {}
        """Files whose chunks are being written, with an offset that none of these lies below."""
        self.pipelines: dict[str, PipelineState] = {}
        """What the sinks of pipelines have announced, by checkpoint."""
        self.progress: dict[str, Runs] = {}
        """What the drivers of queries have reported, as far as it was written down."""
        self.temporaries = Temporaries()
        self.last_offset = -1
        """The offset of the last fact."""
        self.entries = 0
        """Files and folders; the root is not counted."""
        self._root = StoredDirectory(made=True)

    def apply(self, fact: Fact, offset: int) -> None:
        """Remember what a record says; Unreadable where it fits nowhere, and then nothing has changed."""
        try:
            self._apply(fact, offset)
        except RequestRefused as problem:
            raise Unreadable(problem.message) from problem
        self.last_offset = offset

    def _apply(self, fact: Fact, offset: int) -> None:
        match fact:
            case FileKept(path, facts, content):
                self.put(check_path(path), StoredFile(facts, offset, content if is_temporary(path) else b""))
            case FileGone(path):
                self.remove(check_path(path))
            case FolderMade(path):
                self._make(check_path(path)).made = True
            case FolderGone(path):
                self._unmake(check_path(path))
            case UploadBegun(name, first_offset):
                self.uploads[name] = first_offset
            case UploadEnded(name):
                self.uploads.pop(name, None)
            case PipelineNoted(path, noted, _):
                self.pipelines[check_path(path)] = replace(read_pipeline(noted), noted_at=offset)
            case PipelineGone(path):
                self.pipelines.pop(path, None)
            case ProgressNoted(path, noted):
                self.progress[check_path(path)] = read_runs(noted)
            case ProgressGone(path):
                self.progress.pop(path, None)

    # What is there ----------------------------------------------------------------------------------------

    def find(self, path: str) -> StoredFile | StoredDirectory | None:
        """Return the file or folder of this name, if there is one."""
        found: StoredFile | StoredDirectory | None = self._root
        for name in names_of(path):
            if not isinstance(found, StoredDirectory):
                return None
            found = found.children.get(name)
        return found

    def file(self, path: str) -> StoredFile | None:
        found = self.find(path)
        return found if isinstance(found, StoredFile) else None

    def check_room(self, path: str) -> None:
        """Refuse a path that lies below a file."""
        names = names_of(path)
        for depth in range(1, len(names)):
            ancestor = "/" + "/".join(names[:depth])
            if self.file(ancestor) is not None:
                raise RequestRefused.not_a_folder(ancestor)

    def walk(self, path: str = ROOT) -> "Iterator[tuple[str, StoredFile | StoredDirectory]]":
        """Yield what this path names and all that lies below it, the deepest first."""
        found = self.find(path)
        if isinstance(found, StoredDirectory):
            for name in list(found.children):
                yield from self.walk(f"{path.rstrip('/')}/{name}")
        if found is not None:
            yield path, found

    # How it changes ---------------------------------------------------------------------------------------

    def put(self, path: str, file: StoredFile) -> None:
        """Put a file in place of the one that was there; RequestRefused where there cannot be one."""
        self.check_room(path)
        if path == ROOT or isinstance(self.find(path), StoredDirectory):
            raise RequestRefused.exists(path)
        parent, _, name = path.rpartition("/")
        folder = self._make(parent or ROOT)
        self.entries += name not in folder.children
        folder.children[name] = file
        if is_temporary(path):
            self.temporaries.forget(path)
            self.temporaries.note(path, len(file.content), file.facts.modified_ms)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that existed because of it; nothing where there is none."""
        if self.file(path) is not None:
            self._drop(path)

    def _make(self, path: str) -> StoredDirectory:
        self.check_room(f"{path.rstrip('/')}/.")
        folder = self._root
        for name in names_of(path):
            if name not in folder.children:
                folder.children[name] = StoredDirectory()
                self.entries += 1
            child = folder.children[name]
            assert isinstance(child, StoredDirectory)
            folder = child
        return folder

    def _unmake(self, path: str) -> None:
        found = self.find(path)
        if isinstance(found, StoredDirectory) and path != ROOT:
            found.made = False
            if not found.children:
                self._drop(path)

    def _drop(self, path: str) -> None:
        """Take something out, and every folder above that is then empty and was not made."""
        parent_path, _, name = path.rpartition("/")
        parent = self.find(parent_path or ROOT)
        assert isinstance(parent, StoredDirectory)
        del parent.children[name]
        self.entries -= 1
        self.temporaries.forget(path)
        if not parent.children and not parent.made:
            self._drop(parent_path)


def is_checkpoint(found: StoredFile | StoredDirectory | None) -> bool:
    """Return whether a query has its log of offsets here."""
    return isinstance(found, StoredDirectory) and isinstance(found.children.get("offsets"), StoredDirectory)
