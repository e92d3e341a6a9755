"""Apache Kafka's command line tools against three controllers and two brokers, through either of them."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.adapters import Deadline
from tests.conformance.foreign.kafka_tools import Ran, dump, run
from tests.support.cluster_processes import BROKER, CONTROLLER, ClusterProcesses

VOTERS: Final = (1, 2, 3)
BROKERS: Final = (4, 5)
SPARE: Final = 6
"""A controller that follows, and does not vote yet."""
SIDES: Final = ("server", "controller")

Tool = Callable[..., Ran]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    roles = {**dict.fromkeys(VOTERS, CONTROLLER), **dict.fromkeys(BROKERS, BROKER), SPARE: CONTROLLER}
    with ClusterProcesses(folder, roles, voters=VOTERS) as cluster:
        cluster.start()
        yield cluster
        for node in roles:
            assert cluster.is_running(node), cluster.log_tail(node)
            assert '"exception contained"' not in cluster.log(node).read_text(), cluster.log_tail(node)


@pytest.fixture
def tool(cluster: ClusterProcesses) -> Tool:
    """Return a way to run a tool by way of brokers, or of controllers; it must end well, unless it is to be refused."""

    def run_tool(name: str, *arguments: str, side: str = "server", good: bool = True) -> Ran:
        controllers = ",".join(cluster.controller_address(node) for node in VOTERS)
        address = (f"--bootstrap-{side}", cluster.bootstrap() if side == "server" else controllers)
        ran = run(name, *((*arguments, *address) if name == "ClusterTool" else (*address, *arguments)))
        assert (ran.code == 0) == good, ran.text
        return ran

    return run_tool


def replicas(ran: Ran) -> dict[int, tuple[str, str]]:
    """Return the directory and the role of each replica of the metadata."""
    rows = [line.split() for line in ran.lines[1:]]
    return {int(row[0]): (row[1], row[-1]) for row in rows}


@pytest.mark.parametrize("side", SIDES)
def test_the_quorum_describes_itself(tool: Tool, cluster: ClusterProcesses, side: str) -> None:
    status = dict(line.split(":", 1) for line in tool("MetadataQuorumCommand", "describe", "--status", side=side).lines)
    voters = json.loads(status["CurrentVoters"])
    assert {each["id"]: each["endpoints"] for each in voters} == {
        node: [f"CONTROLLER://{cluster.controller_address(node)}"] for node in VOTERS
    }
    assert {each["id"] for each in json.loads(status["CurrentObservers"])} == {*BROKERS, SPARE}
    found = replicas(tool("MetadataQuorumCommand", "describe", "--replication", side=side))
    assert sorted(role for _directory, role in found.values()) == ["Follower"] * 2 + ["Leader"] + ["Observer"] * 3
    assert found[int(status["LeaderId"])][1] == "Leader"


def test_a_controller_becomes_a_voter_and_none_again(tool: Tool, cluster: ClusterProcesses) -> None:
    own = ("--command-config", str(cluster.config(SPARE)))
    added = tool("MetadataQuorumCommand", *own, "add-controller", side="controller").text
    assert added.startswith(f"Added controller {SPARE} with directory id ")
    found = replicas(tool("MetadataQuorumCommand", "describe", "--replication"))
    directory, role = found[SPARE]
    assert role == "Follower"
    named = ("--controller-id", str(SPARE), "--controller-directory-id", directory)
    tool("MetadataQuorumCommand", "remove-controller", *named)
    assert replicas(tool("MetadataQuorumCommand", "describe", "--replication"))[SPARE] == (directory, "Observer")
    again = tool("MetadataQuorumCommand", "remove-controller", *named, side="controller", good=False).text
    assert "VoterNotFoundException" in again


def test_features_go_down_and_up(tool: Tool) -> None:
    def level(name: str, side: str) -> str:
        text = tool("FeatureCommand", "describe", side=side).text
        found = re.search(rf"Feature: {re.escape(name)}\s.*FinalizedVersionLevel: (\S+)", text)
        assert found is not None, text
        return found[1]

    feature = "transaction.version"
    assert [level(feature, side) for side in SIDES] == ["2", "2"]
    tool("FeatureCommand", "downgrade", "--feature", f"{feature}=1")
    assert [level(feature, side) for side in SIDES] == ["1", "1"]
    tool("FeatureCommand", "upgrade", "--feature", f"{feature}=2", side="controller")
    assert [level(feature, side) for side in SIDES] == ["2", "2"]
    assert level("kraft.version", "controller") == "1"
    below = tool("FeatureCommand", "downgrade", "--feature", "metadata.version=20", side="controller", good=False)
    assert "metadata.version is at level 30" in below.text
    below = tool("FeatureCommand", "downgrade", "--feature", "kraft.version=0", side="controller", good=False)
    assert "kraft.version is at level 1 and stays there" in below.text


def test_topics_are_spread_over_the_brokers_and_copied_nowhere(tool: Tool, tmp_path: Path) -> None:
    tool("TopicCommand", "--create", "--topic", "spread", "--partitions", "4")
    _head, *partitions = tool("TopicCommand", "--describe", "--topic", "spread").lines
    rows = [re.search(r"\tLeader: (\d)\tReplicas: (\d)\tIsr: (\d)\t", line) for line in partitions]
    assert sorted(row.groups() for row in rows if row) == [(str(each),) * 3 for each in (4, 4, 5, 5)]
    copied = ("--create", "--topic", "copied", "--replication-factor", "2")
    why = "Replication of partitions is not there yet; use a replication factor of 1."
    assert why in tool("TopicCommand", *copied, good=False).text
    plan = tmp_path / "plan.json"
    move = {"topic": "spread", "partition": 0, "replicas": list(BROKERS)}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    execute = ("ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--execute")
    assert why in tool(*execute, good=False).text
    for side in SIDES:
        assert tool("ReassignPartitionsCommand", "--list", side=side).lines == ["No partition reassignments found."]


def test_settings_of_all_brokers_and_of_one_are_changed_from_both_sides(tool: Tool) -> None:
    everybody, one = (
        ("--entity-type", "brokers", "--entity-default"),
        ("--entity-type", "brokers", "--entity-name", "4"),
    )
    tool("ConfigCommand", *everybody, "--alter", "--add-config", "log.retention.ms=3600000", side="controller")
    tool("ConfigCommand", *one, "--alter", "--add-config", "log.retention.ms=7200000")
    for side in SIDES:
        described = tool("ConfigCommand", *everybody, "--describe", side=side).text
        assert "log.retention.ms=3600000 " in described
    described = tool("ConfigCommand", *one, "--describe").text
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=7200000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms" in described
    tool("ConfigCommand", *one, "--alter", "--delete-config", "log.retention.ms", side="controller")
    tool("ConfigCommand", *everybody, "--alter", "--delete-config", "log.retention.ms")
    for side in SIDES:
        assert "log.retention.ms" not in tool("ConfigCommand", *everybody, "--describe", side=side).text


def test_the_nodes_of_the_cluster_are_listed_on_their_own_side(tool: Tool, cluster: ClusterProcesses) -> None:
    for side, nodes in zip(SIDES, (BROKERS, VOTERS), strict=True):
        assert tool("ClusterTool", "cluster-id", side=side).lines == ["Cluster ID: abcdefghijklmnopqrstuA"]
        _head, *rows = (line.split() for line in tool("ClusterTool", "list-endpoints", side=side).lines)
        at = {node: cluster.bootstrap(node) or cluster.controller_address(node) for node in nodes}
        assert {int(row[0]): ":".join(row[1:3]) for row in rows} == at


def test_a_broker_that_is_gone_leads_nothing_and_is_taken_out(tool: Tool, cluster: ClusterProcesses) -> None:
    tool("TopicCommand", "--create", "--topic", "left", "--partitions", "2")
    preferred = ("LeaderElectionCommand", "--election-type", "preferred", "--topic", "left", "--partition", "0")
    assert "Valid replica already elected for partitions left-0" in tool(*preferred).text
    assert cluster.stop(5) == 0
    unclean = ("LeaderElectionCommand", "--election-type", "unclean", "--all-topic-partitions")
    assert "EligibleLeadersNotAvailableException" in tool(*unclean, good=False).text
    unregister = ("ClusterTool", "unregister", "--id", "5")
    assert tool(*unregister).lines == ["Broker 5 is no longer registered."]
    assert "BrokerIdNotRegisteredException" in tool(*unregister, side="controller", good=False).text
    cluster.start(5)
    _head, *partitions = tool("TopicCommand", "--describe", "--topic", "left").lines
    leaders = [found[1] for line in partitions if (found := re.search(r"\tLeader: (\S+)\t", line))]
    assert sorted(leaders) == ["4", "5"], "its records are still there"


def test_all_nodes_have_the_same_records_at_the_same_offsets(tool: Tool, cluster: ClusterProcesses) -> None:
    tool("TopicCommand", "--create", "--topic", "the-last", "--partitions", "1")
    files = [cluster.folder / str(node) / "__cluster_metadata-0" / f"{0:020}.log" for node in cluster.roles]
    deadline = Deadline()
    while deadline.left() and len({file.read_bytes() for file in files}) > 1:
        pass
    dumped = dump(files, "--cluster-metadata-decoder")
    assert dumped.code == 0, dumped.text
    logs = [each.splitlines()[1:] for each in dumped.text.split("Dumping ")[1:]]
    assert len(logs) == len(files)
    assert all(log == logs[0] for log in logs)
    records = [json.loads(line.partition("payload: ")[2]) for line in logs[0] if "payload: " in line]
    kinds = {each["type"] for each in records}
    assert kinds >= {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD", "TOPIC_RECORD"}
    assert [each["data"]["name"] for each in records if each["type"] == "TOPIC_RECORD"][-1] == "the-last"
