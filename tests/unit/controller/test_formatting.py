"""Log directories that are prepared for a cluster."""

from random import Random

import pytest

from riverlog.controller.folder_check import check_folder
from riverlog.controller.formatting import format_directories
from riverlog.log.identity import DirectoryRefused, find
from riverlog.model.ids import NodeId
from tests.support.clusters import CLUSTER_ID, StillClock
from tests.support.disk import MemoryDisk
from tests.support.raft import directory, voter, voters

FOLDERS = ("/a", "/b")


def test_first_voters_stand_in_the_metadata_of_the_first_directory() -> None:
    disk = MemoryDisk()
    formatted = format_directories(
        disk, StillClock(), Random(1), FOLDERS, cluster_id=CLUSTER_ID, node_id=NodeId(2), first_voters=voters(1, 2, 3)
    )
    assert [each.folder for each in formatted] == list(FOLDERS)
    assert formatted[0].directory_id == directory(2)
    for folder in FOLDERS:
        identity = find(disk, folder)
        assert identity is not None
        assert (identity.cluster_id, identity.node_id) == (CLUSTER_ID, 2)
    found = check_folder(disk, "/a/__cluster_metadata-0")
    assert [each.voters for each in found.said] == [voters(1, 2, 3)]
    assert not disk.exists("/b/__cluster_metadata-0")


def test_a_node_that_begins_alone_votes_in_the_directory_that_it_gets() -> None:
    disk = MemoryDisk()
    [formatted] = format_directories(
        disk, StillClock(), Random(1), ["/a"], cluster_id=CLUSTER_ID, node_id=NodeId(1), own_voter=voter(1)
    )
    [said] = check_folder(disk, "/a/__cluster_metadata-0").said
    assert said.voters is not None
    [only] = said.voters
    assert (only.key.id, only.key.directory_id) == (1, formatted.directory_id)


def test_what_belongs_to_a_cluster_is_left_as_it_is() -> None:
    disk = MemoryDisk()
    format_directories(disk, StillClock(), Random(1), ["/a"], cluster_id=CLUSTER_ID, node_id=NodeId(1))
    before = disk.everything()
    for ignore, cluster_id in ((False, CLUSTER_ID), (True, "another")):
        with pytest.raises(DirectoryRefused, match="it was left"):
            format_directories(
                disk,
                StillClock(),
                Random(2),
                FOLDERS,
                cluster_id=cluster_id,
                node_id=NodeId(1),
                ignore_formatted=ignore,
            )
    assert disk.everything() == before
    again = format_directories(
        disk, StillClock(), Random(3), FOLDERS, cluster_id=CLUSTER_ID, node_id=NodeId(1), ignore_formatted=True
    )
    assert [each.was_formatted for each in again] == [True, False]
