"""Nodes that cannot join a cluster, as processes: each ends with one sentence, and nothing is lost."""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from riverlog.cli.terminal.exits import ExitCode
from riverlog.controller.bootstrap_file import BOOTSTRAP_FILE
from riverlog.controller.snapshot_files import encode_snapshot
from riverlog.metadata.records import FeatureLevelRecord
from riverlog.model.ids import LeaderEpoch
from riverlog.raft.voters import VoterSet
from tests.support.cluster_processes import BROKER, CONTROLLER, ClusterProcesses

PROGRAM = Path(sys.executable).with_name("riverlog")
SECONDS_MAX = 30
SOON = "initial.broker.registration.timeout.ms=1000"


@pytest.fixture
def cluster(tmp_path: Path) -> ClusterProcesses:
    return ClusterProcesses(tmp_path, {1: CONTROLLER, 4: BROKER, 5: BROKER})


def refused(cluster: ClusterProcesses, node: int, *settings: str, code: ExitCode = ExitCode.FAILED) -> str:
    """Start a node that cannot serve; return its sentence. What it had on the disk is still there."""
    before = records_of(cluster, node)
    options = [word for setting in settings for word in ("--set", setting)]
    ended = subprocess.run(
        [PROGRAM, "serve", "--config", cluster.config(node), *options],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    sentence = ended.stderr.splitlines()[-1]
    assert (ended.returncode, ended.stdout) == (code, "")
    assert sentence.startswith("riverlog: ")
    assert "Traceback" not in ended.stderr
    assert records_of(cluster, node) == before
    return sentence


def records_of(cluster: ClusterProcesses, node: int) -> dict[str, bytes]:
    folder = cluster.folder / str(node)
    names = ("meta.properties", BOOTSTRAP_FILE, "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def replaced(cluster: ClusterProcesses, node: int, name: str, value: str) -> None:
    """Put another value into meta.properties."""
    file = cluster.folder / str(node) / "meta.properties"
    file.write_text(re.sub(f"(?m)^{re.escape(name)}=.*$", f"{name}={value}", file.read_text()))


def test_a_node_of_another_cluster(cluster: ClusterProcesses) -> None:
    with cluster:
        cluster.start(1)
        replaced(cluster, 4, "cluster.id", "another")
        sentence = refused(cluster, 4, code=ExitCode.UNREACHABLE)
        assert (
            f"belongs to the cluster another, and the controllers that it asks ({cluster.controller_address(1)})"
            in (sentence)
        )
        assert "belongs to the cluster another, not to third" in refused(cluster, 4, "cluster.id=third")


def test_a_wrong_node_id(cluster: ClusterProcesses) -> None:
    assert "belongs to node 4, not to node 5" in refused(cluster, 4, "node.id=5")


def test_a_foreign_directory_id(cluster: ClusterProcesses) -> None:
    with cluster:
        cluster.start(1, 4)
        own = re.search("directory.id=(.*)", (cluster.folder / "4" / "meta.properties").read_text())
        assert own is not None
        replaced(cluster, 5, "directory.id", own[1])
        sentence = refused(cluster, 5, code=ExitCode.REFUSED)
        assert "one of the directories may be registered for another broker" in sentence
        cluster.kill(1)
        replaced(cluster, 1, "directory.id", own[1])
        assert "put back the meta.properties that it was used with" in refused(cluster, 1)


def test_controllers_of_which_too_few_run_or_none(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: BROKER}) as cluster:
        sentence = refused(cluster, 4, SOON, code=ExitCode.UNREACHABLE)
        assert f"{cluster.controller_address(1)}: Connection refused" in sentence
        assert "is a majority of the controllers running" in sentence
        cluster.start(1)
        sentence = refused(cluster, 4, SOON, code=ExitCode.UNREACHABLE)
        assert f"{cluster.controller_address(1)}: knows no leader in epoch " in sentence
        assert cluster.stop(1) == ExitCode.DONE


def test_a_node_that_waits_for_a_quorum_stops_at_once(cluster: ClusterProcesses) -> None:
    waiting = subprocess.Popen([PROGRAM, "serve", "--config", cluster.config(4)], stdout=subprocess.PIPE)
    try:
        metadata = cluster.folder / "4" / "__cluster_metadata-0" / "quorum-state"
        deadline = time.monotonic() + SECONDS_MAX
        while not metadata.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        began = time.monotonic()
        waiting.send_signal(signal.SIGTERM)
        out, _ = waiting.communicate(timeout=SECONDS_MAX)
        assert (waiting.returncode, out) == (ExitCode.DONE, b"")
        assert time.monotonic() - began < 5
    finally:
        waiting.kill()
        waiting.wait()


def test_features_out_of_range(cluster: ClusterProcesses) -> None:
    wanted = [FeatureLevelRecord(name="metadata.version", feature_level=99)]
    content = encode_snapshot(wanted, LeaderEpoch(0), 0, voters=VoterSet(), kraft_version=0)
    (cluster.folder / "1" / BOOTSTRAP_FILE).write_bytes(content)
    assert "wants metadata.version at level 99, which is not known here" in refused(cluster, 1)


def test_a_second_process_on_the_folder_or_the_port(cluster: ClusterProcesses, tmp_path: Path) -> None:
    with cluster:
        cluster.start(1)
        port = cluster.controller_address(1).rpartition(":")[2]
        assert f"port {port} is in use" in refused(cluster, 1)
        other = cluster.controller_address(4)
        assert "is in use by another node" in refused(cluster, 1, f"listeners=CONTROLLER://{other}")
        cluster.start(4)
        shutil.copytree(tmp_path / "4", tmp_path / "copy", ignore=shutil.ignore_patterns(".lock"))
        sentence = refused(
            cluster, 4, f"log.dirs={tmp_path}/copy", f"listeners=PLAINTEXT://{other}", SOON, code=ExitCode.REFUSED
        )
        assert "another process is registered as broker 4 and lives" in sentence
