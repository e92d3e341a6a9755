"""What a node does before it can be part of a cluster, or to catch up with one, and the power fails in between."""

from copy import copy
from random import Random
from typing import Final, Self

from riverlog.controller.bootstrap_file import read_bootstrap
from riverlog.controller.folder_check import check_folder
from riverlog.controller.formatting import format_directories
from riverlog.controller.storage import MetadataStorage
from riverlog.log.identity import find
from riverlog.metadata.features import FIRST_LEVELS
from riverlog.model.ids import NodeId, Offset
from tests.support.clusters import CLUSTER_ID, StillClock
from tests.support.disk import MemoryDisk
from tests.support.raft import voters
from tests.unit.controller.test_storage import FOLDER, SNAPSHOT, add, content_of, level

_FOLDERS: Final = ("/a", "/b")


class FormatDrill:
    """A directory that belongs to a cluster has all that belongs to it, and one whose formatting was said to be done
    is formatted."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        for folder in _FOLDERS:
            self.disk.make_folder(folder)
        self.disk.sync_folder("/")
        self._done = False

    def after_crash(self, seed: int) -> Self:
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        return other

    def expectations(self) -> str:
        return str(self._done)

    def live(self) -> None:
        """Format two directories of a voter."""
        self._format()
        self._done = True

    def aftermath(self) -> list[str]:
        wrong = self._look()
        if not wrong and not self._done:
            self._format()
            self.disk.crash()
            self._done = True
            wrong = self._look()
        return wrong

    def _format(self) -> None:
        format_directories(
            self.disk,
            StillClock(),
            Random(1),
            _FOLDERS,
            cluster_id=CLUSTER_ID,
            node_id=NodeId(2),
            first_voters=voters(1, 2, 3),
            ignore_formatted=True,
        )

    def _look(self) -> list[str]:
        formatted = [folder for folder in _FOLDERS if find(self.disk, folder) is not None]
        if self._done and len(formatted) < len(_FOLDERS):
            return [f"of {_FOLDERS} only {formatted} belong to the cluster"]
        for folder in formatted:
            if read_bootstrap(self.disk, folder) != FIRST_LEVELS:
                return [f"{folder} does not say with which levels the cluster begins"]
        if _FOLDERS[0] in formatted:
            said = check_folder(self.disk, f"{_FOLDERS[0]}/__cluster_metadata-0").said
            if [each.voters for each in said] != [voters(1, 2, 3)]:
                return [f"{_FOLDERS[0]} does not say who votes"]
        return []


class InstallDrill:
    """The log is the old one, or the snapshot that takes its place; what was said to be installed is."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.make_folder(FOLDER)
        self.disk.sync_folder("/")
        self.disk.sync_folder("/data")
        self._is_installed = False

    def after_crash(self, seed: int) -> Self:
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        return other

    def expectations(self) -> str:
        return str(self._is_installed)

    def live(self) -> None:
        """Write a little, fetch a snapshot in two pieces, and begin behind it."""
        storage = self._opened()
        for number in (7, 8):
            add(storage, number)
            storage.log.flush()
        content = content_of(level(3))
        storage.write_part(SNAPSHOT, 0, content[:100])
        storage.write_part(SNAPSHOT, 100, content[100:])
        storage.install(SNAPSHOT)
        self._is_installed = True
        add(storage, 9, epoch=5)
        storage.log.flush()

    def aftermath(self) -> list[str]:
        storage = self._opened()
        if storage.newest_snapshot is None:
            return ["the snapshot is gone"] if self._is_installed else []
        if list(storage.snapshot_records(SNAPSHOT)) != [level(3)]:
            return ["the snapshot is not what was fetched"]
        if storage.log.log_start_offset != SNAPSHOT.end_offset:
            return [f"the log begins at {storage.log.log_start_offset}, and not behind the snapshot"]
        list(storage.records(Offset(SNAPSHOT.end_offset), storage.end_offset))
        return []

    def _opened(self) -> MetadataStorage:
        return MetadataStorage.open(self.disk, StillClock(), check_folder(self.disk, FOLDER))
