"""Snapshot files of the metadata log."""

import pytest

from riverlog.controller.snapshot_files import (
    BadMetadata,
    decode_snapshot,
    encode_snapshot,
    snapshot_id,
    snapshot_name,
    voters_said,
)
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import ConfigRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.raft.log_tail import SnapshotId
from riverlog.records.errors import CorruptBatch
from tests.support.raft import voters


def snapshot_of(records, *, kraft_version=1):
    return encode_snapshot(records, LeaderEpoch(1), 5, voters=voters(1, 2), kraft_version=kraft_version)


def test_a_snapshot_needs_its_beginning_and_its_end():
    whole = snapshot_of(snapshot_records(MetadataImage()))
    assert list(decode_snapshot(whole)) == []
    for cut in (whole[:-10], whole[: len(whole) // 2], b""):
        with pytest.raises(CorruptBatch):
            list(decode_snapshot(cut))


@pytest.mark.parametrize("name", ["x.checkpoint", "0-0.checkpoint", f"{1:020}-{1:09}.checkpoint"])
def test_a_strange_snapshot_name_is_refused(name):
    with pytest.raises(BadMetadata, match="not the name of a snapshot"):
        snapshot_id(f"/data/{name}")


def test_a_large_snapshot_has_several_batches():
    records = [ConfigRecord(resource_type=4, name=f"setting.{number}", value="5") for number in range(25_000)]
    assert list(decode_snapshot(snapshot_of(records))) == records


def test_names_carry_the_offset_behind_the_last_record_and_its_epoch():
    name = snapshot_name(SnapshotId(Offset(12_345), LeaderEpoch(7)))
    assert name == "00000000000000012345-0000000007.checkpoint"
    assert snapshot_id(name) == (12_345, 7)


def test_a_snapshot_says_who_votes():
    said = voters_said(snapshot_of([]))
    assert [(each.voters, each.kraft_version) for each in said] == [(None, 1), (voters(1, 2), None)]


def test_without_reconfiguration_a_snapshot_says_nothing_of_voters():
    assert voters_said(snapshot_of([], kraft_version=0)) == []
