"""When a log's producers are written down: where a segment begins, and now and then within a long one, so that a
recovery need not scan all of it for them. What was written within a segment is replaced by the next."""

from collections.abc import Iterable
from typing import Final

from riverlog.log.producers.state import Producers
from riverlog.log.recovery.replay import producers_before
from riverlog.log.segments.log_folder import SNAPSHOT_SUFFIX, path_of
from riverlog.log.segments.segments import Segments
from riverlog.log.sync import SyncPlan
from riverlog.model.ids import Offset

_INTERVAL_BYTES: Final = 64 * 1024 * 1024


class Snapshots:
    """The snapshots that a log has still to write, and those that the next one makes useless."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._unsynced: dict[Offset, bytes] = {}
        self._interim: list[Offset] = []
        """Those that belong to no segment's start."""
        self._position = 0  # how far into the active segment the last one reaches

    def begin_segment(self, offset: Offset, producers: Producers) -> None:
        """Write the producers down where a segment begins."""
        self._unsynced[offset] = producers.encode()
        self._position = 0

    def add_to(self, plan: SyncPlan, active_bytes: int, producers: Producers | None) -> bool:
        """Add to a plan what is to be written, and return whether there was any.

        No producers while they know of batches that are not in the log yet.
        """
        interim: list[Offset] = []
        if producers is not None and active_bytes - self._position >= _INTERVAL_BYTES:
            interim.append(plan.upto)
            self._unsynced[plan.upto] = producers.encode()
            self._position = active_bytes
        if self._unsynced:
            plan.removals += (self._path(offset) for offset in self._interim)
            self._interim = interim
        unsynced, self._unsynced = self._unsynced, {}
        for offset, content in unsynced.items():
            plan.replacements[self._path(offset)] = content
        return bool(unsynced)

    def keep_past(self, segments: Segments, count: int, now_ms: int) -> None:
        """Prepare the first segments to go: write down the producers where those behind them begin.

        That was done when they began, unless a crash came first.
        """
        for base_offset in segments.bases[1 : count + 1]:
            if base_offset not in self._unsynced and not segments.folder.disk.exists(self._path(base_offset)):
                self._unsynced[base_offset] = producers_before(segments, base_offset, now_ms=now_ms).encode()

    def forget(self, bases: Iterable[Offset]) -> None:
        """Do not write those of segments that are gone."""
        for base_offset in bases:
            self._unsynced.pop(base_offset, None)

    def restart(self) -> None:
        """Forget all: the log was cut."""
        self._unsynced, self._interim, self._position = {}, [], 0

    def _path(self, offset: Offset) -> str:
        return path_of(self._folder, offset, SNAPSHOT_SUFFIX)
