"""What must hold of the files of the metadata log; test_log.py sees what a node makes of it."""

import pytest

from riverlog.controller.folder_check import check_segments, voters_in_snapshot
from riverlog.controller.snapshot_files import BadMetadata, encode_snapshot
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.raft.control_records import KRaftVersionRecord, encode_batch
from riverlog.raft.log_tail import SnapshotId
from tests.support.disk import MemoryDisk
from tests.support.raft import voters


def batch(base_offset: int, epoch: int) -> bytes:
    said = [KRaftVersionRecord(k_raft_version=1)]
    return bytes(encode_batch(said, base_offset=Offset(base_offset), epoch=LeaderEpoch(epoch), timestamp_ms=1))


def segments(*contents: tuple[int, bytes]) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder("/m")
    for base_offset, content in contents:
        disk.open(f"/m/{base_offset:020}.log", create=True).write(0, [content])
    return disk


def test_segments_that_follow_each_other_are_whole() -> None:
    disk = segments((4, batch(4, 1) + batch(5, 1)), (6, batch(6, 2)))
    found = check_segments(disk, "/m", after_clean_stop=True)
    assert found.end == 7
    assert [each.offset for each in found.said] == [4, 5, 6]


def test_no_segment_is_no_record() -> None:
    assert check_segments(segments(), "/m", after_clean_stop=True) == ([], 0)


@pytest.mark.parametrize(
    "wrong",
    [
        segments((4, batch(5, 1))),
        segments((4, batch(4, 1) + batch(6, 1))),
        segments((4, batch(4, 2) + batch(5, 1))),
        segments((4, batch(4, 2)), (5, batch(5, 1))),
    ],
    ids=["first", "gap", "epoch", "epoch of a segment"],
)
def test_offsets_and_epochs_go_on_where_the_batch_before_ends(wrong: MemoryDisk) -> None:
    with pytest.raises(BadMetadata, match="behind offset"):
        check_segments(wrong, "/m", after_clean_stop=False)


def test_a_snapshot_speaks_with_its_last_record() -> None:
    content = encode_snapshot([], LeaderEpoch(3), 5, voters=voters(1, 2), kraft_version=1)
    [said] = voters_in_snapshot("/m", content, SnapshotId(Offset(90), LeaderEpoch(3)))
    assert (said.offset, said.voters, said.kraft_version) == (89, voters(1, 2), 1)
    with pytest.raises(BadMetadata):
        voters_in_snapshot("/m", content[:30] + b"\xff" + content[31:], SnapshotId(Offset(90), LeaderEpoch(3)))
