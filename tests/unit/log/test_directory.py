"""A node's log directory: lock, checkpoints, partitions, the marker of a clean shutdown."""

import errno
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from riverlog.log.checkpoint import encode_offsets, replace_file
from riverlog.log.directory import CLEAN_FILE, LOG_STARTS_FILE, RECOVERY_POINTS_FILE, LogDirectory
from riverlog.log.identity import DirectoryRefused
from riverlog.log.log import Log
from riverlog.log.segments.open_files import OpenFiles, write_file
from riverlog.model.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

FOLDER = "/var/data"
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = TopicId(UUID(int=5))
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=1_000, index_interval_bytes=100)


def opened(disk: MemoryDisk, node: int = 1) -> LogDirectory:
    return LogDirectory.open(disk, FOLDER, node_id=NodeId(node), random=Random(1))


def created(directory: LogDirectory, partition: TopicPartition = ORDERS, records: int = 0) -> Log:
    log = directory.create_log(partition, TOPIC_ID, CONFIG, now_ms=0)
    for number in range(records):
        append(log, number)
    return log


def append(log: Log, number: int) -> None:
    batch = batch_of([b"value"], timestamp_ms=number)
    log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)


def checkpoint(directory: LogDirectory) -> None:
    plan = directory.pending_checkpoint({ORDERS: Offset(3)})
    plan.run()
    directory.checkpointed(plan)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def test_a_second_node_on_the_same_folder_is_refused(disk: MemoryDisk) -> None:
    directory = opened(disk)
    with pytest.raises(DirectoryRefused, match="in use by another node"):
        opened(disk)
    directory.close({})
    opened(disk).close({})


def test_another_nodes_folder_is_refused_and_not_locked(disk: MemoryDisk) -> None:
    opened(disk).close({})
    with pytest.raises(DirectoryRefused, match="belongs to node 1"):
        opened(disk, node=2)
    opened(disk).close({})


def test_a_clean_shutdown_is_remembered_once(disk: MemoryDisk) -> None:
    directory = opened(disk)
    assert not directory.clean
    created(directory, records=5)
    directory.close({ORDERS: Offset(5)})
    directory = opened(disk)
    assert directory.clean
    assert directory.partitions() == [ORDERS]
    assert directory.topic_id(ORDERS) == TOPIC_ID
    assert directory.high_watermark(ORDERS) == 5
    log = directory.open_log(ORDERS, CONFIG, now_ms=0)
    assert log.flushed_offset == log.log_end_offset == 5
    disk.crash()
    assert not opened(disk).clean


def test_everything_survives_a_crash_right_after_a_clean_shutdown(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=30)
    directory.close({})
    disk.crash()
    directory = opened(disk)
    assert directory.clean
    assert directory.open_log(ORDERS, CONFIG, now_ms=0).log_end_offset == 30


def test_checkpoints_say_where_recovery_begins(disk: MemoryDisk) -> None:
    directory = opened(disk)
    log = created(directory, records=30)
    log.flush()
    log.advance_log_start(Offset(4))
    checkpoint(directory)
    disk.crash()
    directory = opened(disk)
    assert directory.high_watermark(ORDERS) == 3
    log = directory.open_log(ORDERS, CONFIG, now_ms=0)
    assert (log.log_start_offset, log.flushed_offset, log.log_end_offset) == (4, 30, 30)
    assert directory.open_log(ORDERS, CONFIG, now_ms=0) is directory.opened.get(ORDERS) is log


def test_checkpoints_keep_the_partitions_that_were_not_opened(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=7)
    directory.close({ORDERS: Offset(7)})
    directory = opened(disk)
    directory.close({})
    directory = opened(disk)
    assert directory.high_watermark(ORDERS) == 7
    assert directory.open_log(ORDERS, CONFIG, now_ms=0).log_end_offset == 7


def test_a_damaged_checkpoint_is_reported_and_costs_only_a_scan(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=7)
    directory.close({})
    disk.damage(f"{FOLDER}/recovery-point-offset-checkpoint", 0)
    directory = opened(disk)
    assert len(directory.damage) == 1
    assert directory.open_log(ORDERS, CONFIG, now_ms=0).log_end_offset == 7


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_that_was_never_reached_deletes_nothing(disk: MemoryDisk, clean: bool) -> None:
    directory = opened(disk)
    created(directory, records=30)
    directory.close({ORDERS: Offset(30)})
    replace_file(disk, f"{FOLDER}/{LOG_STARTS_FILE}", encode_offsets({ORDERS: Offset(999)}))
    if not clean:
        disk.remove(f"{FOLDER}/{CLEAN_FILE}")
    directory = opened(disk)
    log = directory.open_log(ORDERS, CONFIG, now_ms=0)
    assert log.start_not_believed == 999
    assert (log.log_start_offset, log.log_end_offset, log.damage) == (0, 30, [])
    directory.close({ORDERS: Offset(30)})
    assert opened(disk).open_log(ORDERS, CONFIG, now_ms=0).start_not_believed is None


def test_a_log_start_that_was_committed_once_is_believed_although_the_records_below_are_lost(disk: MemoryDisk) -> None:
    directory = opened(disk)
    log = created(directory, records=10)
    log.flush()
    for number in range(20):
        append(log, number)
    log.advance_log_start(Offset(25))
    plan = directory.pending_checkpoint({ORDERS: Offset(30)})
    plan.run()
    directory.checkpointed(plan)
    replace_file(disk, f"{FOLDER}/{RECOVERY_POINTS_FILE}", encode_offsets({ORDERS: Offset(10)}))
    disk.kill()
    for name in disk.list(f"{FOLDER}/orders-0"):
        if name.endswith(".log") and int(name[:20]) >= 10:
            disk.remove(f"{FOLDER}/orders-0/{name}")
    log = opened(disk).open_log(ORDERS, CONFIG, now_ms=0)
    assert log.start_not_believed is None
    assert (log.log_start_offset, log.log_end_offset) == (25, 25)


def test_compaction_that_was_never_reached_is_not_believed(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=30)
    directory.note_cleaned(ORDERS, Offset(31))
    assert directory.cleaned_offset(ORDERS) == 0
    directory.note_cleaned(ORDERS, Offset(30))
    assert directory.cleaned_offset(ORDERS) == 30


def test_a_deleted_partition_leaves_nothing_to_a_new_one_of_its_name(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=30).flush()
    checkpoint(directory)
    directory.delete_logs([ORDERS], Random(2))()
    assert directory.partitions() == []
    (deleted,) = directory.deleted_folders()
    assert deleted.startswith(f"{FOLDER}/orders-0.")
    assert deleted.endswith("-delete")
    created(directory, records=2).flush()
    disk.crash()
    directory = opened(disk)
    assert directory.high_watermark(ORDERS) == 0
    log = directory.open_log(ORDERS, CONFIG, now_ms=0)
    assert log.damage == []
    assert log.log_end_offset == 2
    directory.remove_deleted(directory.deleted_folders())
    assert directory.deleted_folders() == []


def test_a_partition_whose_folder_is_gone_goes_on_where_it_ended(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=30)
    directory.note_cleaned(ORDERS, Offset(30))
    directory.close({ORDERS: Offset(30)})
    disk.remove_folder(f"{FOLDER}/{ORDERS}")
    directory = opened(disk)
    assert directory.missing() == {ORDERS: 30}
    directory.resume(ORDERS, Offset(30))
    directory.write_forgotten()
    disk.crash()  # before it was created
    directory = opened(disk)
    assert directory.missing() == {ORDERS: 30}
    directory.resume(ORDERS, Offset(30))
    log = created(directory, records=1)
    assert (log.log_start_offset, log.log_end_offset, log.damage) == (30, 31, [])
    assert directory.cleaned_offset(ORDERS) == 0
    log.flush()
    disk.crash()
    directory = opened(disk)
    assert directory.missing() == {}
    log = directory.open_log(ORDERS, CONFIG, now_ms=0)
    assert (log.log_start_offset, log.log_end_offset, log.damage) == (30, 31, [])
    directory.delete_logs([ORDERS], Random(2))()
    assert created(directory, records=1).log_end_offset == 1


@pytest.mark.parametrize("topic", ["orders", "o" * 249])
def test_a_partition_that_was_deleted_before_a_crash_is_not_missed(disk: MemoryDisk, topic: str) -> None:
    name = TopicPartition(topic, 0)
    directory = opened(disk)
    created(directory, name, records=30).flush()
    created(directory, TopicPartition(topic[:200], 10), records=30).flush()
    checkpoint(directory)
    directory.delete_logs([name], Random(2))()
    disk.crash()
    disk.remove_folder(f"{FOLDER}/{topic[:200]}-10")
    assert opened(disk).missing() == {TopicPartition(topic[:200], 10): 30}


def test_a_folder_that_was_never_durable_is_not_missed(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=3)
    checkpoint(directory)  # the high watermark is, and nothing else
    disk.remove_folder(f"{FOLDER}/{ORDERS}")
    disk.kill()
    directory = opened(disk)
    assert (directory.high_watermark(ORDERS), directory.missing()) == (3, {})


def test_a_checkpoint_planned_before_a_deletion_does_not_bring_it_back(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=30).flush()
    plan = directory.pending_checkpoint({})
    directory.delete_logs([ORDERS], Random(2))()
    created(directory, records=1).flush()
    plan.run()
    directory.checkpointed(plan)
    disk.crash()
    assert opened(disk).open_log(ORDERS, CONFIG, now_ms=0).damage == []


@pytest.mark.parametrize(("is_checkpointed", "waits"), [(True, 0), (False, 1)])
def test_a_creation_writes_down_what_was_forgotten_only_where_nobody_has(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch, is_checkpointed: bool, waits: int
) -> None:
    directory = opened(disk)
    created(directory, records=30).flush()
    checkpoint(directory)
    directory.delete_logs([ORDERS], Random(2))()
    assert directory.has_forgotten
    if is_checkpointed:
        plan = directory.pending_checkpoint({})
        plan.run()
        assert directory.checkpointed(plan)
    synced: list[str] = []
    monkeypatch.setattr(disk, "sync_folder", synced.append)
    directory.create_log(ORDERS, TOPIC_ID, CONFIG, now_ms=0)
    assert not directory.has_forgotten
    assert len(synced) == waits


def test_a_truncation_is_not_mistaken_for_damage(disk: MemoryDisk) -> None:
    for seed in range(10):
        disk = MemoryDisk(seed)
        directory = opened(disk)
        created(directory, records=30).flush()
        checkpoint(directory)
        directory.truncate_log(ORDERS, Offset(12), now_ms=0)
        disk.crash()
        log = opened(disk).open_log(ORDERS, CONFIG, now_ms=0)
        assert log.damage == []
        assert log.log_end_offset == 12


def test_how_far_a_log_is_compacted_is_remembered_and_never_runs_ahead(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=30).flush()
    directory.note_cleaned(ORDERS, Offset(20))
    checkpoint(directory)
    disk.crash()
    directory = opened(disk)
    assert directory.cleaned_offset(ORDERS) == 20
    directory.open_log(ORDERS, CONFIG, now_ms=0)
    directory.truncate_log(ORDERS, Offset(12), now_ms=0)
    disk.crash()
    assert opened(disk).cleaned_offset(ORDERS) == 12


def test_a_deleted_partition_leaves_no_note_about_compaction(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=3).flush()
    directory.note_cleaned(ORDERS, Offset(3))
    directory.delete_logs([ORDERS], Random(0))()
    assert directory.cleaned_offset(ORDERS) == 0


def test_the_longest_topic_name_can_be_deleted(disk: MemoryDisk) -> None:
    directory = opened(disk)
    partition = TopicPartition("t" * 249, 999)
    created(directory, partition)
    directory.delete_logs([partition], Random(2))()
    (deleted,) = directory.deleted_folders()
    assert len(deleted.rpartition("/")[2]) <= 255


def test_only_folders_of_partitions_are_listed(disk: MemoryDisk) -> None:
    directory = opened(disk)
    for name in ("a-b-7", "orders", "-3", "x-y", "orders-0.abc-delete", "orders-1"):
        disk.make_folder(f"{FOLDER}/{name}")
    assert directory.partitions() == [TopicPartition("a-b", 7), TopicPartition("orders", 1)]


def test_an_abandoned_directory_writes_nothing(disk: MemoryDisk) -> None:
    directory = opened(disk)
    created(directory, records=3)
    steps = disk.steps
    directory.abandon()
    assert disk.steps == steps
    assert disk.open_files <= 2
    assert not opened(disk).clean


def test_all_logs_share_one_bound_on_open_files(disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenFiles.__init__, "__defaults__", (4,))
    directory = opened(disk)
    partitions = [TopicPartition("orders", number) for number in range(20)]
    for partition in partitions:
        created(directory, partition, records=3).flush()
    assert disk.open_files <= 5


def test_a_thousand_partitions_cost_a_few_steps_each(disk: MemoryDisk) -> None:
    directory = opened(disk)
    partitions = [TopicPartition("orders", number) for number in range(100)]
    for partition in partitions:
        created(directory, partition, records=3)
    directory.close({})
    directory = opened(disk)
    steps = disk.steps
    for partition in partitions:
        directory.open_log(partition, CONFIG, now_ms=0)
    assert disk.steps - steps <= 15 * len(partitions)


def test_a_partition_whose_id_found_no_room_is_not_open(disk: MemoryDisk) -> None:
    directory = opened(disk)
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(OSError, match="No space"):
        created(directory, records=0)
    created(directory, records=1)
    assert directory.topic_id(ORDERS) is not None


@pytest.mark.parametrize("left", [b"", b"[]", b"{", b'{"version":0,"brokerEpoch":"x"}'])
def test_the_epoch_of_the_broker_that_stopped_is_kept_for_the_next_start(disk: MemoryDisk, left: bytes) -> None:
    directory = opened(disk)
    directory.broker_epoch = 7
    directory.close({})
    assert disk.content(f"{FOLDER}/{CLEAN_FILE}") == b'{"version":0,"brokerEpoch":7}'
    directory = opened(disk)
    assert directory.broker_epoch == 7
    directory.close({})
    write_file(disk, f"{FOLDER}/{CLEAN_FILE}", left)
    assert opened(disk).broker_epoch == -1


def test_a_log_that_cannot_be_given_its_topics_id_is_not_kept_open() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    failed = 0
    for after in range(12):
        disk.fail(after, errno.EMFILE, on=("open", "create"))
        try:
            created(directory)
        except OSError:
            failed += 1
            assert directory.opened.get(ORDERS) is None
            continue
        break
    disk.heal()
    assert failed
    assert directory.topic_id(ORDERS) == TOPIC_ID


def test_a_directory_is_new_once() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    assert (directory.is_new, directory.clean) == (True, False)
    directory.abandon()
    assert not opened(disk).is_new


def test_the_size_of_a_log_is_known_without_opening_it(disk: MemoryDisk) -> None:
    directory = opened(disk)
    log = created(directory, records=30)
    assert len(log.segments) > 1
    size = directory.size_of(ORDERS)
    assert size == log.size > 0
    directory.close({ORDERS: Offset(30)})
    assert opened(disk).size_of(ORDERS) == size
