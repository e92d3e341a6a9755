"""What is wrong with the folders of a node."""

import re
from pathlib import Path
from random import Random

import pytest

from riverlog.cli.storage_examination import examine
from riverlog.controller.bootstrap_file import BOOTSTRAP_FILE
from riverlog.controller.formatting import format_directories
from riverlog.model.ids import NodeId
from riverlog.model.resolution import configure
from riverlog.model.settings import NodeSettings
from riverlog.world.disk import FileSystem
from tests.support.clusters import StillClock
from tests.support.raft import voters


@pytest.fixture
def node() -> NodeSettings:
    return configure(
        flags={
            "node.id": "1",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "c1:9093,c2:9093",
        }
    ).settings


def formatted(folder: Path, *, cluster_id: str = "one", node_id: int = 1) -> str:
    format_directories(
        FileSystem(),
        StillClock(),
        Random(1),
        [str(folder)],
        cluster_id=cluster_id,
        node_id=NodeId(node_id),
        first_voters=voters(1, 2, 3),
    )
    return str(folder)


def test_folders_of_one_cluster_and_node_are_well(tmp_path: Path, node: NodeSettings) -> None:
    folders = [formatted(tmp_path / "a"), formatted(tmp_path / "b")]
    before = sorted(tmp_path.rglob("*"))
    rows = examine(node, folders)
    assert [row["problem"] for row in rows] == [None, None]
    assert str(rows[0]["voters"]).count("@") == 3
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "problem"),
    [
        ("two", 1, "it belongs to the cluster two, not to one"),
        ("one", 2, "it belongs to node 2, and node.id is 1"),
        (None, 0, "it is not formatted; `riverlog storage format` does that"),
    ],
)
def test_a_folder_of_another_is_found(
    cluster_id: str | None, node_id: int, problem: str, tmp_path: Path, node: NodeSettings
) -> None:
    second = tmp_path / "b"
    if cluster_id is not None:
        formatted(second, cluster_id=cluster_id, node_id=node_id)
    rows = examine(node, [formatted(tmp_path / "a"), str(second)])
    assert [row["problem"] for row in rows] == [None, problem]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (BOOTSTRAP_FILE, "bootstrap.checkpoint cannot be read"),
        ("meta.properties", "is damaged: it does not name a cluster"),
        ("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", "metadata in .* is damaged"),
    ],
)
def test_damage_is_a_problem(name: str, sentence: str, tmp_path: Path, node: NodeSettings) -> None:
    folder = formatted(tmp_path / "a")
    file = tmp_path / "a" / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
    [row] = examine(node, [folder])
    assert str(row["problem"])
    assert re.search(sentence, str(row["problem"]))
