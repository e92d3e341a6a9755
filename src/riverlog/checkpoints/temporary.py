"""Temporary files: in the tree, in memory, gone with the process. Bounded in bytes and in number."""

from riverlog.checkpoints.paths import is_below
from riverlog.checkpoints.tree import File, Tree
from riverlog.model.limits import CHECKPOINT_TEMPORARY_BYTES_MAX, CHECKPOINT_TEMPORARY_FILES_MAX


class Temporaries:
    """The temporary files of a tree, the oldest first."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def fits(self, size: int) -> bool:
        """Tell whether so many bytes more may be held in memory."""
        return self.bytes + size <= CHECKPOINT_TEMPORARY_BYTES_MAX

    def put(self, path: str, file: File) -> None:
        """Hold a file; one that was there under its name is to be forgotten first."""
        assert file.is_temporary
        assert path not in self._sizes
        self._tree.put(path, file)
        self._sizes[path] = len(file.content)
        self.bytes += len(file.content)

    def forget(self, path: str) -> None:
        """Let go of a file; nothing where there is none."""
        size = self._sizes.pop(path, None)
        if size is not None:
            self.bytes -= size
            self._tree.remove(path)

    def too_many(self) -> list[str]:
        """Name the oldest ones that are to be forgotten before another is held."""
        excess = len(self._sizes) + 1 - CHECKPOINT_TEMPORARY_FILES_MAX
        return list(self._sizes)[:excess] if excess > 0 else []

    def below(self, folder: str) -> list[str]:
        """Name those in a folder and in the folders in it."""
        return [path for path in self._sizes if is_below(path, folder)]
