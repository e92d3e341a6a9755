"""Rules of durability, each of which can be switched off: the simulation must notice.

A switch takes away one sync or turns one order round, in the node or in the disk under it. One that no run of the
simulation notices is either a rule that nothing rests on, or a simulation that does not look.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock
from weakref import WeakKeyDictionary

from riverlog.controller import storage as metadata_storage
from riverlog.controller.log import MetadataLog
from riverlog.controller.storage import MetadataStorage
from riverlog.coordination.shard_log import ShardLog
from riverlog.log import checkpoint, directory, identity
from riverlog.log import log as log_module
from riverlog.log.directory import LogDirectory
from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention, find_expired
from riverlog.log.segments.open_files import write_file
from riverlog.log.segments.segment import Segment
from riverlog.log.sync import SyncPlan
from riverlog.log.sync_planner import SyncPlanner
from riverlog.metadata.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from riverlog.partitions.partition import Partition
from tests.simulation import drill
from tests.simulation.crash_points import Off, noticed_at_crash_points
from tests.simulation.drill import noticed_in_drill
from tests.simulation.plan import Plan, draw_failing_flushes, draw_plan, with_groups
from tests.simulation.run import simulate
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.syncs import Place
from tests.support.disk import MemoryDisk, MemoryFile

METADATA: Final = "__cluster_metadata"
DRILLS: Final = 3_000
"""A drill is fifty times cheaper than a simulated node."""
SEEDS: Final = 100


@dataclass(frozen=True)
class Switch:
    """A rule that can be switched off."""

    name: str
    off: Off
    draw: Callable[[int], Plan] | None = None
    """Gives the plan of a seed, where it takes a node to notice."""
    scenario: str = ""
    """The scenario that notices, where drills do not."""


def noticed(switch: Switch) -> str | None:
    """Switch the rule off until something fails that does not fail otherwise; say what, or None."""
    if switch.draw is not None:
        return _noticed_by_nodes(switch.off, switch.draw)
    if switch.scenario:
        return noticed_at_crash_points(switch.off, [each for each in SCENARIOS if each.name == switch.scenario])
    return noticed_in_drill(switch.off, range(DRILLS))


def noticed_without(place: Place) -> str | None:
    """Leave out a wait where it matters most, and then ever further; give what goes wrong, or None."""
    return noticed_at_crash_points(place.left_out, SCENARIOS) or noticed_in_drill(place.left_out, range(DRILLS))


def _noticed_by_nodes(off: Off, draw: Callable[[int], Plan]) -> str | None:
    for seed in range(SEEDS):
        with off():
            outcome = simulate(draw(seed))
        if outcome.violations and not simulate(draw(seed)).violations:
            return f"seed {seed}: {outcome.violations[0]}"
    return None


def _skip_sync(of: Callable[[str], bool]) -> Off:
    """Make the sync of some files do nothing."""
    sync = MemoryFile.sync
    return lambda: mock.patch.object(MemoryFile, "sync", lambda file: None if of(file.path) else sync(file))


def _skip_folder_sync(of: Callable[[str], bool]) -> Off:
    """Make the sync of some folders do nothing."""
    sync = MemoryDisk.sync_folder
    return lambda: mock.patch.object(
        MemoryDisk, "sync_folder", lambda disk, folder: None if of(folder) else sync(disk, folder)
    )


def _is_partition(folder: str) -> bool:
    return "-" in folder.rpartition("/")[2] and METADATA not in folder


def _ends(suffix: str) -> Callable[[str], bool]:
    return lambda path: path.endswith(suffix)


@contextmanager
def _only_the_active_segment_is_synced() -> Iterator[None]:
    pending_sync = Log.pending_sync

    def forgetful(log: Log) -> SyncPlan:
        plan, active = pending_sync(log), log.segments.active.file().path
        plan.files = [file for file in plan.files if not file.path.endswith(".log") or file.path == active]
        return plan

    with mock.patch.object(Log, "pending_sync", forgetful):
        yield


@contextmanager
def _the_folder_of_a_log_is_taken_for_durable() -> Iterator[None]:
    pending_sync = Log.pending_sync

    def trusting(log: Log) -> SyncPlan:
        plan = pending_sync(log)
        plan.folders = [folder for folder in plan.folders if folder == log.folder]
        return plan

    with mock.patch.object(Log, "pending_sync", trusting):
        yield


@contextmanager
def _acknowledged_before_the_flush() -> Iterator[None]:
    write = Partition.write

    def hasty(partition: Partition) -> Any:
        lost, log = write(partition), partition.log
        flushed, log.flushed_offset = log.flushed_offset, log.log_end_offset
        partition.flushed()
        log.flushed_offset = flushed
        return lost

    with mock.patch.object(Partition, "write", hasty):
        yield


@contextmanager
def _flushed_before_the_flush() -> Iterator[None]:
    pending_sync = Log.pending_sync

    def hasty(log: Log) -> SyncPlan:
        plan = pending_sync(log)
        log.flushed_offset = plan.upto
        return plan

    with mock.patch.object(Log, "pending_sync", hasty):
        yield


@contextmanager
def _recovery_point_ahead_of_the_flush() -> Iterator[None]:
    pending = LogDirectory.pending_checkpoint

    def hasty(self: LogDirectory, *given: Any) -> Any:
        flushed = {log: log.flushed_offset for log in self.opened.values()}
        for log in flushed:
            log.flushed_offset = log.log_end_offset
        try:
            return pending(self, *given)
        finally:
            for log, offset in flushed.items():
                log.flushed_offset = offset

    with mock.patch.object(LogDirectory, "pending_checkpoint", hasty):
        yield


@contextmanager
def _a_failed_flush_is_tried_again() -> Iterator[None]:
    run = SyncPlan.run

    def stubborn(plan: SyncPlan) -> None:
        try:
            run(plan)
        except OSError:
            run(plan)

    with mock.patch.object(SyncPlan, "run", stubborn):
        yield


@contextmanager
def _a_failed_flush_is_taken_for_done() -> Iterator[None]:
    run = SyncPlan.run

    def careless(plan: SyncPlan) -> None:
        try:
            run(plan)
        except OSError:
            pass

    with mock.patch.object(SyncPlan, "run", careless):
        yield


@contextmanager
def _recovered_records_count_before_they_are_synced() -> Iterator[None]:
    opened = Log.open.__func__  # type: ignore[attr-defined]

    def hasty(cls: type[Log], *given: Any, **named: Any) -> Log:
        with mock.patch.object(Log, "flush", lambda log: log.synced(log.pending_sync())):
            return opened(cls, *given, **named)

    with mock.patch.object(Log, "open", classmethod(hasty)):
        yield


@contextmanager
def _names_are_in_place_before_the_content() -> Iterator[None]:
    with (
        mock.patch.object(checkpoint, "write_durably", _write_undurably),
        mock.patch.object(directory, "write_durably", _write_undurably),
    ):
        yield


def _write_undurably(disk: Any, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write(0, [content])
    file.close()


@contextmanager
def _offsets_of_a_deleted_partition_are_remembered() -> Iterator[None]:
    with (
        mock.patch.object(LogDirectory, "write_forgotten", return_value=None),
        mock.patch.object(LogDirectory, "forget", return_value=None),
    ):
        yield


@contextmanager
def _old_metadata_goes_before_its_snapshot_is_durable() -> Iterator[None]:
    write = MetadataStorage.write_snapshot

    def hasty(*given: Any) -> None:
        with mock.patch.object(metadata_storage, "write_durably", _write_undurably):
            write(*given)

    with mock.patch.object(MetadataStorage, "write_snapshot", hasty):
        yield


@contextmanager
def _identity_takes_its_name_before_its_content() -> Iterator[None]:
    with mock.patch.object(identity, "write_durably", _write_undurably):
        yield


@contextmanager
def _what_was_cut_off_comes_back() -> Iterator[None]:
    truncate = Segment.truncate

    def careless(segment: Segment, position: int) -> None:
        with mock.patch.object(MemoryFile, "sync", return_value=None):
            truncate(segment, position)

    with mock.patch.object(Segment, "truncate", careless):
        yield


@contextmanager
def _groups_are_answered_before_the_commit() -> Iterator[None]:
    append = ShardLog.append

    def hasty(log: ShardLog[Any], records: Any) -> "asyncio.Future[None]":
        return _done_with(append(log, records))

    with mock.patch.object(ShardLog, "append", hasty):
        yield


def _done_with(committed: "asyncio.Future[None]") -> "asyncio.Future[None]":
    """Take what will be committed for committed, whatever becomes of it."""
    committed.add_done_callback(lambda done: done.cancelled() or done.exception())
    at_once: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    at_once.set_result(None)
    return at_once


@contextmanager
def _a_marker_stays_when_the_directory_is_opened() -> Iterator[None]:
    remove = MemoryDisk.remove

    def forgetful(disk: MemoryDisk, path: str) -> None:
        if not path.endswith(directory.CLEAN_FILE):
            remove(disk, path)

    with mock.patch.object(MemoryDisk, "remove", forgetful):
        yield


@contextmanager
def _a_stop_does_not_flush() -> Iterator[None]:
    begin_close = Log.begin_close

    def hasty(log: Log) -> SyncPlan:
        plan = begin_close(log)
        plan.files.clear()
        return plan

    with mock.patch.object(Log, "begin_close", hasty):
        yield


def _a_compaction_does_not_flush() -> AbstractContextManager[Any]:
    return mock.patch.object(SyncPlanner, "closed_is_durable", True)


@contextmanager
def _a_stop_is_marked_as_clean_before_it_is() -> Iterator[None]:
    close = LogDirectory.close

    def hasty(self: LogDirectory, *given: Any, **named: Any) -> None:
        write_file(self._disk, f"{self.folder}/{directory.CLEAN_FILE}", b"")
        self._disk.sync_folder(self.folder)
        close(self, *given, **named)

    with mock.patch.object(LogDirectory, "close", hasty):
        yield


@contextmanager
def _segments_go_before_the_next_one_is_durable() -> Iterator[None]:
    def hasty(log: Log, *given: Any, **named: Any) -> Any:
        reasons = find_expired(log, *given, **named)
        while find_expired(log, *given, **named):
            enforce_retention(log, *given, **named, segments_max=1)
        return reasons

    with mock.patch.object(drill, "find_expired", hasty):
        yield


@contextmanager
def _damage_is_written_down_with_the_next_flush() -> Iterator[None]:
    open_log = Log.open

    def hasty(*given: Any, **named: Any) -> Log:
        with mock.patch.object(log_module, "replace_file", return_value=None):
            log = open_log(*given, **named)
        log.quarantine.unsaved = True
        return log

    with mock.patch.object(Log, "open", hasty):
        yield


def _answered_before_the_flush(kind: type[object]) -> Off:
    """Take records of this kind for committed as soon as they are submitted, where nothing is ahead of them."""
    append = MetadataLog.append
    latest: WeakKeyDictionary[MetadataLog, asyncio.Future[None]] = WeakKeyDictionary()

    def hasty(log: MetadataLog, records: Any) -> "asyncio.Future[None]":
        ahead, committed = latest.get(log), append(log, records)
        if any(isinstance(record, kind) for record in records) and (ahead is None or ahead.done()):
            committed = _done_with(committed)
        latest[log] = committed
        return committed

    return lambda: mock.patch.object(MetadataLog, "append", hasty)


SWITCHES: Final = (
    Switch("segments are synced", _skip_sync(_ends(".log"))),
    Switch(
        "metadata is synced", _skip_sync(lambda path: path.endswith(".log") and METADATA in path), scenario="metadata"
    ),
    Switch("closed segments are synced too", _only_the_active_segment_is_synced),
    Switch("names in a partition's folder are synced", _skip_folder_sync(_is_partition)),
    Switch("names in the log directory are synced", _skip_folder_sync(_ends("/data"))),
    Switch("the name of a partition's folder is synced", _the_folder_of_a_log_is_taken_for_durable, scenario="begin 0"),
    Switch("the log directory's own name is synced", _skip_folder_sync(lambda folder: folder in ("", "/"))),
    Switch(
        "names in the metadata's folder are synced",
        _skip_folder_sync(lambda folder: METADATA in folder),
        scenario="metadata",
    ),
    Switch("small files are synced before they take a name", _names_are_in_place_before_the_content),
    Switch("the identity is durable", _identity_takes_its_name_before_its_content),
    Switch("acknowledged after the flush", _acknowledged_before_the_flush, draw=draw_plan),
    Switch("flushed after the flush", _flushed_before_the_flush, scenario="meanwhile 0"),
    Switch("the recovery point follows the flush", _recovery_point_ahead_of_the_flush),
    Switch("a failed flush is final", _a_failed_flush_is_tried_again, draw=draw_failing_flushes),
    Switch("a failed flush is noticed", _a_failed_flush_is_taken_for_done, draw=draw_failing_flushes),
    Switch("what was recovered is synced before it counts", _recovered_records_count_before_they_are_synced),
    Switch("what was cut off stays off", _what_was_cut_off_comes_back),
    Switch("a deleted partition's offsets are forgotten", _offsets_of_a_deleted_partition_are_remembered),
    Switch(
        "a metadata snapshot is durable before it replaces",
        _old_metadata_goes_before_its_snapshot_is_durable,
        scenario="metadata",
    ),
    Switch("a stop in good order flushes", _a_stop_does_not_flush),
    Switch(
        "groups are answered after the commit",
        _groups_are_answered_before_the_commit,
        draw=lambda seed: with_groups(draw_plan(seed)),
    ),
    Switch("a topic is there after the flush", _answered_before_the_flush(TopicRecord), scenario="metadata"),
    Switch(
        "a topic is gone after the flush",
        _answered_before_the_flush(RemoveTopicRecord),
        scenario="metadata",
    ),
    Switch(
        "a setting is changed after the flush",
        _answered_before_the_flush(ConfigRecord),
        scenario="metadata",
    ),
    Switch("the marker of a clean stop goes first", _a_marker_stays_when_the_directory_is_opened),
    Switch("the marker of a clean stop comes last", _a_stop_is_marked_as_clean_before_it_is),
    Switch("a compaction flushes first", _a_compaction_does_not_flush),
    Switch(
        "a segment goes when the next one is durable",
        _segments_go_before_the_next_one_is_durable,
        scenario="give up all 0",
    ),
    Switch(
        "damage is written down before it is hidden",
        _damage_is_written_down_with_the_next_flush,
        scenario="lost bytes 3",
    ),
)
