"""Every place in the log engine and the rooms on it that waits for the medium, found in their source.

A place is named after its function, `log.compaction.swap.finish_swaps`, with a number where there are several in it. A
call of `replace_file` and its like is a place too: what it does with contents and with names can be left out there
alone.
"""

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from unittest import mock

import riverlog
from tests.support.disk import MemoryDisk, MemoryFile

_SOURCE: Final = Path(riverlog.__file__).parent
_ROOMS: Final = ("log", "partitions", "controller", "upkeep")
_KINDS: Final = {
    "sync": ("sync",),
    "sync_folder": ("sync_folder",),
    "write_durably": ("sync",),
    "put_in_place": ("sync_folder",),
    "replace_file": ("sync", "sync_folder"),
}
_SHARED: Final = ("checkpoint.py", "open_files.py")
"""Modules whose functions sync on behalf of others."""
_DEPTH_MAX: Final = 8


class _Unsynced(Protocol):
    changes: int
    pending: list[Any]


class LeftOut:
    """The waits that were left out."""

    def __init__(self) -> None:
        self._noted: list[tuple[_Unsynced, int]] = []

    def note(self, unsynced: _Unsynced) -> None:
        """Take note of a file or folder that should be on the medium as it is now."""
        self._noted.append((unsynced, unsynced.changes))

    @property
    def is_missed(self) -> bool:
        """Return whether something is still not on the medium that should be."""
        return any(unsynced.changes - len(unsynced.pending) < upto for unsynced, upto in self._noted)


@dataclass(frozen=True)
class Place:
    """One call that waits for the medium: for contents (`sync`) or for names (`sync_folder`)."""

    name: str
    kind: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} waits for {'contents' if self.kind == 'sync' else 'names'}"

    @contextmanager
    def left_out(self) -> Iterator["LeftOut"]:
        """Return at once, as if the call had waited."""
        sync, sync_folder, left_out = MemoryFile.sync, MemoryDisk.sync_folder, LeftOut()

        def sync_file_or_not(file: MemoryFile) -> None:
            if self._is_caller("sync"):
                left_out.note(file.content)
                file.disk.step("sync", file.path)
            else:
                sync(file)

        def sync_folder_or_not(disk: MemoryDisk, folder: str) -> None:
            if self._is_caller("sync_folder"):
                left_out.note(disk.names_in(folder))
                disk.step("sync_folder", folder)
            else:
                sync_folder(disk, folder)

        with (
            mock.patch.object(MemoryFile, "sync", sync_file_or_not),
            mock.patch.object(MemoryDisk, "sync_folder", sync_folder_or_not),
        ):
            yield left_out

    def _is_caller(self, kind: str) -> bool:
        if kind != self.kind:
            return False
        frame = inspect.currentframe()
        for _ in range(_DEPTH_MAX):
            if frame is None:
                return False
            if frame.f_code.co_filename == self.file and frame.f_lineno == self.line:
                return True
            frame = frame.f_back
        return False


def places() -> list[Place]:
    """Find them all, in the order of their names."""
    found = []
    for room in _ROOMS:
        for path in sorted((_SOURCE / room).rglob("*.py")):
            if path.name not in _SHARED:
                found += _places_in(path, ".".join(path.relative_to(_SOURCE).with_suffix("").parts))
    return found


def _places_in(path: Path, module: str) -> Iterator[Place]:
    for function, calls in _functions(ast.parse(path.read_text()), module):
        for number, (called, line) in enumerate(calls, start=1):
            for kind in _KINDS[called]:
                name = function if len(calls) == 1 else f"{function} ({number})"
                yield Place(name, kind, str(path), line)


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}.{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls = sorted(_calls(node), key=lambda call: call[1])
            if calls:
                yield f"{prefix}.{node.name}", calls


def _calls(function: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in _KINDS:
                yield called, node.lineno
