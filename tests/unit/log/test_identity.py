"""Whose log directory it is."""

from random import Random

import pytest

from riverlog.log.checkpoint import read_file, replace_file
from riverlog.log.identity import META_FILE, DirectoryIdentity, DirectoryRefused, check_first, claim
from riverlog.model.ids import NodeId
from tests.support.disk import MemoryDisk


def claimed(disk: MemoryDisk, *, node: int = 1, cluster: str | None = None, region: str = "") -> DirectoryIdentity:
    disk.make_folder("/data")
    return claim(disk, "/data", node_id=NodeId(node), cluster_id=cluster, region=region, random=Random(4))


def test_a_new_directory_is_claimed_and_stays_the_same() -> None:
    disk = MemoryDisk()
    first = claimed(disk, region="eu")
    content = read_file(disk, "/data/meta.properties") or b""
    assert content.startswith(b"version=1\ncluster.id=")
    assert b"\nnode.id=1\ndirectory.id=" in content
    assert content.endswith(b"\nregion=eu\n")
    assert claimed(disk) == claimed(disk, cluster=first.cluster_id) == first
    assert len(first.cluster_id) == 22


def test_a_region_may_change() -> None:
    disk = MemoryDisk()
    claimed(disk, region="eu")
    assert claimed(disk, region="us").region == claimed(disk).region == "us"


def test_another_cluster_or_node_is_refused_in_one_sentence() -> None:
    disk = MemoryDisk()
    claimed(disk, cluster="ours")
    with pytest.raises(DirectoryRefused, match="/data belongs to the cluster ours, not to theirs"):
        claimed(disk, cluster="theirs")
    with pytest.raises(DirectoryRefused, match="/data belongs to node 1, not to node 2"):
        claimed(disk, node=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"version=1\ncluster.id=a\nnode.id=x\ndirectory.id=y\n", "damaged"),
        (b"version=1\nnode.id=1\n", "damaged"),
        (b"version=0\nbroker.id=1\n", "version 0"),
        (b"\xff\xfe", "damaged"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(content: bytes, message: str) -> None:
    disk = MemoryDisk()
    disk.make_folder("/data")
    replace_file(disk, "/data/meta.properties", content)
    with pytest.raises(DirectoryRefused, match=message):
        claimed(disk)


def test_a_file_as_kafka_writes_it_is_understood() -> None:
    disk = MemoryDisk()
    disk.make_folder("/data")
    replace_file(
        disk,
        "/data/meta.properties",
        b"#\n#Mon Jan 05 10:00:00 UTC 2026\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
        b"directory.id=DR4vMEFSY3SFlqe4ydrr_A\nnode.id=1\nversion=1\n",
    )
    assert claimed(disk)[:2] == ("MkU3OEVBNTcwNTJENDM2Qg", 1)


def test_metadata_are_not_begun_anew_beside_a_directory_of_a_cluster() -> None:
    disk = MemoryDisk()
    for folder in ("/first", "/second"):
        disk.make_folder(folder)
    check_first(disk, ["/first", "/second"], "metadata", cluster_id="")
    disk.open(f"/second/{META_FILE}", create=True)
    with pytest.raises(DirectoryRefused, match="/first is empty, but /second belongs to a cluster"):
        check_first(disk, ["/first", "/second"], "metadata", cluster_id="")
    disk.open(f"/first/{META_FILE}", create=True)
    check_first(disk, ["/first", "/second"], "metadata", cluster_id="")  # the first start was interrupted
    disk.make_folder("/second/metadata")
    disk.open(f"/second/metadata/{0:020}.log", create=True)
    with pytest.raises(DirectoryRefused, match="name that one first"):
        check_first(disk, ["/first", "/second"], "metadata", cluster_id="")
    check_first(disk, ["/second", "/first"], "metadata", cluster_id="ours")


def test_an_empty_directory_is_refused_where_its_cluster_is_named() -> None:
    disk = MemoryDisk()
    with pytest.raises(DirectoryRefused, match="/data is empty, but is to belong to the cluster ours; mount"):
        check_first(disk, ["/data"], "metadata", cluster_id="ours")
    claimed(disk)
    check_first(disk, ["/data"], "metadata", cluster_id="ours")


def test_metadata_are_not_begun_anew_beside_their_partitions() -> None:
    disk = MemoryDisk()
    claimed(disk)
    for folder in ("/data/metadata-0", "/data/orders-0"):
        disk.make_folder(folder)
    check_first(disk, ["/data"], "metadata-0", cluster_id="")  # nothing was ever written
    disk.open(f"/data/orders-0/{0:020}.log", create=True)
    with pytest.raises(DirectoryRefused, match=r"/data holds partitions, but not the metadata .*\(metadata-0\)"):
        check_first(disk, ["/data"], "metadata-0", cluster_id="")
    disk.open(f"/data/metadata-0/{7:020}-{1:010}.checkpoint", create=True)
    check_first(disk, ["/data"], "metadata-0", cluster_id="")


def test_nobody_becomes_the_owner_of_partitions_that_are_there() -> None:
    disk = MemoryDisk()
    disk.make_folder("/data")
    disk.open("/data/notes-1", create=True)
    disk.make_folder("/data/orders-0")
    disk.open(f"/data/orders-0/{0:020}.log", create=True)
    with pytest.raises(DirectoryRefused, match=r"holds partitions, but no meta\.properties"):
        claimed(disk)
    assert disk.list("/data") == ["notes-1", "orders-0"]
