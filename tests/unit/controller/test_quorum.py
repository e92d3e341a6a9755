"""A quorum of one: each start begins an epoch, whose vote is kept before anything is written in it."""

import errno
from itertools import pairwise

import pytest

from riverlog.controller.snapshot_files import BadMetadata
from riverlog.log.checkpoint import read_file
from riverlog.log.identity import DirectoryRefused
from riverlog.model.errors import Refusal
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.control_records import (
    KRaftVersionRecord,
    LeaderChangeRecord,
    VoterId,
    decode_record,
    encode_batch,
    voters_record,
)
from riverlog.raft.election import ElectionState
from riverlog.raft.quorum_state import decode_election
from riverlog.raft.voters import ReplicaKey, Voter
from riverlog.records.record import read_batches
from tests.support.disk import MemoryDisk
from tests.support.metadata_log import only_voter_log
from tests.support.raft import voters
from tests.unit.controller.metadata_node import (
    FOLDER,
    SEGMENT,
    VOTER,
    Node,
    StillClock,
    TurnLater,
    names,
    run,
)

STATE = f"{FOLDER}/quorum-state"


def control_records(disk: MemoryDisk) -> list[tuple[int, object]]:
    """Return the control records of the log, each with the epoch of its batch."""
    return [
        (header.leader_epoch, decode_record(record))
        for header, records in read_batches(read_file(disk, SEGMENT) or b"")
        if header.is_control
        for record in records
    ]


def vote_on(disk: MemoryDisk) -> ElectionState:
    return decode_election(read_file(disk, STATE) or b"").election


@run
async def test_a_new_log_begins_with_its_leader_and_its_voter():
    disk = MemoryDisk()
    node = Node(disk)
    assert vote_on(disk) == ElectionState(LeaderEpoch(1), NodeId(1), VOTER.key)
    assert control_records(disk) == [
        (1, LeaderChangeRecord(leader_id=1, voters=(VoterId(1),), granting_voters=(VoterId(1),))),
        (1, KRaftVersionRecord(k_raft_version=1)),
        (1, voters_record(node.controller.quorum.voters)),
    ]
    assert list(node.controller.quorum.voters) == [VOTER]
    assert node.controller.quorum.high_watermark == node.controller.end_offset == 3
    await node.controller.close()


@run
async def test_each_start_begins_an_epoch_and_names_the_voter_no_more():
    disk = MemoryDisk()
    for epoch in (1, 2, 3):
        node = Node(disk)
        await node.register()
        await node.create(f"t{epoch}")
        assert node.controller.quorum.epoch == vote_on(disk).epoch == epoch
        assert node.controller.quorum.high_watermark == node.controller.end_offset
        await node.controller.close()
    assert [(epoch, type(each).__name__) for epoch, each in control_records(disk)][3:] == [
        (2, "LeaderChangeRecord"),
        (3, "LeaderChangeRecord"),
    ]
    assert names(Node(disk).view.image) == ["t1", "t2", "t3"]


@run
async def test_the_vote_is_durable_before_the_epoch_begins():
    disk = MemoryDisk()
    steps: list[tuple[str, str]] = []
    disk.before_step = lambda kind, path: steps.append((kind, path.rpartition("/")[2]))
    node = Node(disk)
    saved = steps.index(("rename", "quorum-state.tmp"))
    written = next(place for place, (kind, path) in enumerate(steps) if kind == "write" and path.endswith(".log"))
    assert ("sync_folder", FOLDER.rpartition("/")[2]) in steps[saved:written]
    assert steps.count(("rename", "quorum-state.tmp")) == 1, "only the last of several elections is written"
    await node.controller.close()


@run
async def test_a_log_from_before_there_were_elections_goes_on():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("kept")
    await node.controller.close()
    disk.remove(STATE)
    again = Node(disk)
    assert again.controller.quorum.epoch == 2, "the log knows of epoch 1"
    assert names(again.view.image) == ["kept"]
    await again.controller.close()


@run
async def test_a_vote_that_cannot_be_read_is_no_reason_to_begin_anew():
    disk = MemoryDisk()
    await Node(disk).controller.close()
    disk.damage(STATE, 3)
    before = {name: read_file(disk, f"{FOLDER}/{name}") for name in disk.list(FOLDER)}
    with pytest.raises(BadMetadata, match="quorum-state cannot be read") as refused:
        Node(disk)
    assert "put the folder back from a copy" in str(refused.value)
    assert {name: read_file(disk, f"{FOLDER}/{name}") for name in disk.list(FOLDER)} == before


@run
async def test_the_metadata_of_another_disk_or_node_are_left_alone():
    disk = MemoryDisk()
    await Node(disk).controller.close()
    size = disk.open(SEGMENT).size()
    for other in (ReplicaKey(NodeId(1), voters(1).by_id[NodeId(1)].key.directory_id), ReplicaKey(NodeId(2), None)):
        with pytest.raises(DirectoryRefused, match=r"has the metadata of node 1 .* put back the meta\.properties"):
            Node(disk, voter=Voter(other, ()))
    assert disk.open(SEGMENT).size() == size


@run
async def test_a_quorum_of_several_is_not_led_alone():
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    batch = encode_batch([voters_record(voters(1, 2, 3))], base_offset=Offset(0), epoch=LeaderEpoch(4), timestamp_ms=1)
    disk.open(SEGMENT, create=True).write(0, [bytes(batch)])
    with pytest.raises(DirectoryRefused, match=r"a quorum of 3 controllers \(1, 2, 3\)"):
        Node(disk)


@run
async def test_a_quorum_without_disks_in_its_log_is_not_led_alone_either():
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    elected = LeaderChangeRecord(leader_id=2, voters=tuple(map(VoterId, (1, 2, 3))), granting_voters=(VoterId(2),))
    batch = encode_batch([elected], base_offset=Offset(0), epoch=LeaderEpoch(4), timestamp_ms=1)
    disk.open(SEGMENT, create=True).write(0, [bytes(batch)])
    with pytest.raises(DirectoryRefused, match=r"a quorum of 3 controllers \(1, 2, 3\)"):
        Node(disk)
    disk.remove(SEGMENT)
    disk.open(STATE, create=True).write(
        0,
        [
            b'{"clusterId":"","leaderId":2,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
            b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
        ],
    )
    with pytest.raises(DirectoryRefused, match=r"a quorum of 3 controllers \(1, 2, 3\)"):
        Node(disk)


@run
async def test_a_level_that_is_not_known_is_refused():
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    level = KRaftVersionRecord(k_raft_version=2)
    batch = encode_batch([level], base_offset=Offset(0), epoch=LeaderEpoch(1), timestamp_ms=1)
    disk.open(SEGMENT, create=True).write(0, [bytes(batch)])
    with pytest.raises(DirectoryRefused, match=r"has kraft\.version 2, and this version knows 0 to 1"):
        Node(disk)


@run
async def test_a_snapshot_keeps_epoch_and_voters():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1024")
    await node.register()
    for number in range(30):
        await node.create(f"t{number}", partitions=2)
    await node.controller.close()
    [snapshot] = [name for name in disk.list(FOLDER) if name.endswith(".checkpoint")]
    assert snapshot.endswith("-0000000001.checkpoint")
    again = Node(disk)
    assert list(again.controller.quorum.voters) == [VOTER]
    assert again.controller.quorum.epoch == 2
    await again.create("more")
    await again.controller.close()
    said = [each for each in disk.list(FOLDER) if each.endswith(".log")]
    last = read_file(disk, f"{FOLDER}/{sorted(said)[-1]}") or b""
    epochs = [header.leader_epoch for header, _ in read_batches(last)]
    assert all(before <= after for before, after in pairwise(epochs))
    assert epochs[-1] == 2


@run
async def test_a_log_of_kafkas_without_reconfiguration_stays_without():
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    disk.open(STATE, create=True).write(
        0,
        [
            b'{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
            b'"currentVoters":[{"voterId":1}],"data_version":0}'
        ],
    )
    node = Node(disk)
    assert (node.controller.quorum.epoch, node.controller.quorum.kraft_version) == (5, 0)
    assert [type(each).__name__ for _, each in control_records(disk)] == ["LeaderChangeRecord"]
    assert b'"data_version":0' in (read_file(disk, STATE) or b"")
    await node.controller.close()


def full_for(disk: MemoryDisk, suffix: str) -> None:
    """Let there be no room for writes to some files."""

    def before(kind: str, path: str) -> None:
        if kind == "write" and path.endswith(suffix):
            raise OSError(errno.ENOSPC, "No space left on device")

    disk.before_step = before


@run
async def test_a_full_disk_keeps_no_node_from_leading_itself():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("kept")
    await node.controller.close()
    full_for(disk, "quorum-state.tmp")
    again = Node(disk)
    assert again.controller.quorum.epoch == 2
    await again.create("more")
    await again.controller.close()
    assert vote_on(disk).epoch == 1, "there was no room"
    disk.before_step = lambda _kind, _path: None
    last = Node(disk)
    assert last.controller.quorum.epoch == vote_on(disk).epoch == 3, "the log knows of epoch 2"
    assert names(last.view.image) == ["kept", "more"]
    await last.controller.close()


@run
async def test_without_room_for_a_single_record_the_node_says_so():
    disk = MemoryDisk()
    await Node(disk).controller.close()
    full_for(disk, ".log")
    with pytest.raises(Refusal, match="There is no room for metadata in"):
        Node(disk)


@run
async def test_a_failed_flush_at_the_start_is_what_the_node_ends_with():
    disk = MemoryDisk()
    disk.make_folder("/data")
    log = only_voter_log(disk, FOLDER, StillClock(), TurnLater(), VOTER)
    disk.before_step = lambda kind, path: disk.fail(0, errno.EIO, on=("sync",)) if path == SEGMENT else None
    with pytest.raises(OSError, match=r"."):
        log.quorum.start(log)
    await log.close()


@run
async def test_a_quorum_that_has_not_begun_can_be_closed():
    """Where a node's start fails before, it ends with that failure."""
    log = only_voter_log(MemoryDisk(), FOLDER, StillClock(), TurnLater(), VOTER)
    await log.close()
