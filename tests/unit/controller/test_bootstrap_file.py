"""The levels of features that a cluster begins with, in a file."""

import pytest

from riverlog.controller.bootstrap_file import BOOTSTRAP_FILE, read_bootstrap, write_bootstrap
from riverlog.controller.snapshot_files import BadMetadata, encode_snapshot
from riverlog.metadata.records import FeatureLevelRecord, MetadataRecord, NoOpRecord
from riverlog.model.ids import LeaderEpoch
from riverlog.raft.voters import VoterSet
from tests.support.disk import MemoryDisk


def disk_with(*records: MetadataRecord) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder("/d")
    content = encode_snapshot(records, LeaderEpoch(0), 0, voters=VoterSet(), kraft_version=0)
    disk.open(f"/d/{BOOTSTRAP_FILE}", create=True).write(0, [content])
    return disk


def test_levels_are_read_as_they_were_written() -> None:
    disk = MemoryDisk()
    disk.make_folder("/d")
    assert read_bootstrap(disk, "/d") is None
    write_bootstrap(disk, "/d", {"group.version": 1, "metadata.version": 30, "share.version": 0})
    levels = read_bootstrap(disk, "/d")
    assert levels == {"metadata.version": 30, "group.version": 1}
    assert next(iter(levels)) == "metadata.version"


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([NoOpRecord()], "has a NoOpRecord, which no cluster begins with"),
        ([FeatureLevelRecord(name="metadata.version", feature_level=29)], "wants metadata.version at level 29"),
        ([FeatureLevelRecord(name="winged", feature_level=1)], "wants winged at level 1"),
        ([FeatureLevelRecord(name="group.version", feature_level=1)], "names no metadata.version"),
    ],
)
def test_what_no_cluster_can_begin_with_is_refused(records: list[MetadataRecord], sentence: str) -> None:
    with pytest.raises(BadMetadata, match=sentence):
        read_bootstrap(disk_with(*records), "/d")


def test_a_damaged_file_is_refused() -> None:
    disk = disk_with(FeatureLevelRecord(name="metadata.version", feature_level=30))
    file = disk.open(f"/d/{BOOTSTRAP_FILE}")
    file.truncate(file.size() - 1)
    with pytest.raises(BadMetadata, match="cannot be read"):
        read_bootstrap(disk, "/d")
