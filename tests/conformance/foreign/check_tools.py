"""Apache Kafka's command line tools against the broker: what an operator types, and what it prints."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.foreign.kafka_tools import Ran, run

NewTopic = Callable[..., str]
Tool = Callable[..., Ran]


@pytest.fixture
def tool(bootstrap: str) -> Tool:
    """Return a way to run a tool against the broker; it must end well."""

    def run_well(name: str, *arguments: str, given: str = "") -> Ran:
        ran = run(name, *_addressed(name, arguments, bootstrap), given=given)
        assert ran.code == 0, ran.text
        return ran

    return run_well


@pytest.fixture
def refused(bootstrap: str) -> Tool:
    """Return a way to run a tool that the broker must refuse."""

    def run_ill(name: str, *arguments: str) -> Ran:
        ran = run(name, *_addressed(name, arguments, bootstrap))
        assert ran.code != 0, ran.text
        return ran

    return run_ill


def _addressed(name: str, arguments: tuple[str, ...], bootstrap: str) -> tuple[str, ...]:
    address = ("--bootstrap-server", bootstrap)
    return arguments + address if name == "ClusterTool" else address + arguments  # one of them takes it last


def test_topics_live_and_die(tool: Tool, refused: Tool, fresh_name: Callable[[], str]) -> None:
    topic = fresh_name()
    create = ("TopicCommand", "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=3600000")
    assert tool(*create).lines == [f"Created topic {topic}."]
    assert f"opic '{topic}' already exists" in refused(*create).text
    tool(*create, "--if-not-exists")
    assert topic in tool("TopicCommand", "--list").lines
    tool("TopicCommand", "--alter", "--topic", topic, "--partitions", "3")
    assert "3 partition" in refused("TopicCommand", "--alter", "--topic", topic, "--partitions", "1").text

    head, *partitions = tool("TopicCommand", "--describe", "--topic", topic).lines
    assert re.search(r"\tTopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1\t", head)
    assert "retention.ms=3600000" in head
    for index, line in enumerate(partitions):
        described = rf"\tTopic: {topic}\tPartition: {index}\tLeader: (\d+)\tReplicas: \1\tIsr: \1\b.*"
        assert re.fullmatch(described, line), line
    assert len(partitions) == 3
    for state in ("under-replicated", "at-min-isr"):
        ran = tool("TopicCommand", "--describe", "--topic", topic, f"--{state}-partitions")
        assert bool(ran.lines) == (state == "at-min-isr")

    tool("TopicCommand", "--delete", "--topic", topic)
    assert topic not in tool("TopicCommand", "--list").lines
    assert "does not exist as expected" in refused("TopicCommand", "--describe", "--topic", topic).text


def test_settings_of_a_topic_are_changed(tool: Tool, refused: Tool, new_topic: NewTopic) -> None:
    topic = new_topic(retention_ms="3600000")
    change = ("ConfigCommand", "--alter", "--topic", topic)
    tool(
        *change,
        "--add-config",
        "max.message.bytes=200000,cleanup.policy=[compact,delete]",
        "--delete-config",
        "retention.ms",
    )
    described = tool("ConfigCommand", "--describe", "--topic", topic).text
    assert re.search(r"^  max\.message\.bytes=200000 sensitive=false", described, re.MULTILINE)
    assert re.search(r"^  cleanup\.policy=compact,delete sensitive=false", described, re.MULTILINE)
    assert "retention.ms" not in described
    every = tool("ConfigCommand", "--describe", "--topic", topic, "--all").text
    assert re.search(r"^  retention\.ms=604800000 sensitive=false", every, re.MULTILINE)
    for setting in ("no.such.setting=1", "retention.ms=soon"):
        assert "InvalidConfigurationException" in refused(*change, "--add-config", setting).text


def test_settings_of_a_broker_are_read_and_changed(tool: Tool) -> None:
    (node_id,) = re.findall(r"^(\d+) ", tool("ClusterTool", "list-endpoints").text, re.MULTILINE)
    change = ("ConfigCommand", "--alter", "--broker", node_id)
    tool(*change, "--add-config", "log.retention.ms=1000000")
    described = tool("ConfigCommand", "--describe", "--broker", node_id).text
    assert re.search(r"^  log\.retention\.ms=1000000 sensitive=false", described, re.MULTILINE)
    tool(*change, "--delete-config", "log.retention.ms")
    every = tool("ConfigCommand", "--describe", "--broker", node_id, "--all").text
    assert re.search(rf"^  node\.id={node_id} sensitive=false", every, re.MULTILINE)


def test_lines_are_written_and_read(tool: Tool, new_topic: NewTopic) -> None:
    topic = new_topic()
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tool("ConsoleProducer", "--topic", topic, "--compression-codec", "zstd", *keyed, given="ada:2 lamps\nbob:1 chair\n")
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true")
    read = ("ConsoleConsumer", "--topic", topic, "--partition", "0", "--timeout-ms", "10000", *shown)
    first, second, *_ = tool(*read, "--offset", "earliest", "--max-messages", "2").lines
    assert (first, second) == ("Offset:0\tada\t2 lamps", "Offset:1\tbob\t1 chair")
    assert tool(*read, "--offset", "1", "--max-messages", "1").lines[0] == second


def test_offsets_are_listed_by_every_kind_of_time(tool: Tool, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    tool("ConsoleProducer", "--topic", topic, "--sync", given="".join(f"{index}\n" for index in range(10)))
    counts = dict(line.rsplit(":", 1) for line in tool("GetOffsetShell", "--topic", topic).lines)
    assert counts.keys() == {f"{topic}:0", f"{topic}:1"}
    assert sum(map(int, counts.values())) == 10
    written = {place for place, count in counts.items() if int(count)}
    expected = {
        "earliest": {f"{place}:0" for place in counts},
        "earliest-local": {f"{place}:0" for place in counts},
        "max-timestamp": {f"{place}:{int(counts[place]) - 1}" for place in written},
        "1": {f"{place}:0" for place in written},
        "latest-tiered": set(),
    }
    for kind, lines in expected.items():
        assert set(tool("GetOffsetShell", "--topic", topic, "--time", kind).lines) == lines, kind


def test_records_are_deleted(tool: Tool, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic()
    tool("ConsoleProducer", "--topic", topic, given="".join(f"{index}\n" for index in range(10)))
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}))
    assert (
        f"partition: {topic}-0\tlow_watermark: 4"
        in tool("DeleteRecordsCommand", "--offset-json-file", str(wanted)).lines
    )
    assert tool("GetOffsetShell", "--topic", topic, "--time", "earliest").lines == [f"{topic}:0:4"]


def test_log_folders_show_their_size(tool: Tool, new_topic: NewTopic) -> None:
    topic = new_topic()
    tool("ConsoleProducer", "--topic", topic, given="x" * 50_000)
    described = json.loads(tool("LogDirsCommand", "--describe", "--topic-list", topic).lines[-1])
    ((folder,),) = [broker["logDirs"] for broker in described["brokers"]]
    assert folder["error"] is None
    (partition,) = folder["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert 50_000 < partition["size"] < 51_000
    assert not partition["isFuture"]


def test_the_load_tool_writes_all_its_records(tool: Tool, new_topic: NewTopic) -> None:
    topic = new_topic()
    load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    ran = tool("ProducerPerformance", "--topic", topic, *load, "--command-property", "compression.type=lz4")
    assert ran.lines[-1].startswith("20000 records sent")
    assert tool("GetOffsetShell", "--topic", topic).lines == [f"{topic}:0:20000"]


def test_every_write_of_the_verifying_producer_is_acknowledged(tool: Tool, new_topic: NewTopic) -> None:
    topic = new_topic()
    said = [json.loads(line) for line in tool("VerifiableProducer", "--topic", topic, "--max-messages", "50").lines]
    offsets = [event["offset"] for event in said if event["name"] == "producer_send_success"]
    assert offsets == list(range(50))
    assert (said[-1]["sent"], said[-1]["acked"]) == (50, 50)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_and_is_looked_after(
    tool: Tool, new_topic: NewTopic, fresh_name: Callable[[], str], protocol: str
) -> None:
    topic, group = new_topic(), fresh_name()
    tool("ConsoleProducer", "--topic", topic, given="".join(f"{index}\n" for index in range(10)))
    read = ("ConsoleConsumer", "--topic", topic, "--group", group, "--timeout-ms", "15000", "--max-messages", "4")
    settings = ("--command-property", f"group.protocol={protocol}", "--command-property", "auto.offset.reset=earliest")
    assert [line for line in tool(*read, *settings).lines if line.isdigit()] == ["0", "1", "2", "3"]
    assert [line for line in tool(*read, *settings).lines if line.isdigit()] == ["4", "5", "6", "7"]

    def row() -> list[str]:
        return tool("ConsumerGroupCommand", "--describe", "--group", group).lines[-1].split()[:6]

    assert row() == [group, topic, "0", "8", "10", "2"]
    (listed,) = [
        line.split()
        for line in tool("ConsumerGroupCommand", "--list", "--state", "--type").lines
        if line.startswith(group)
    ]
    assert listed == [group, protocol.title(), "Empty"]
    reset = ("ConsumerGroupCommand", "--group", group, "--topic", topic, "--reset-offsets", "--execute")
    tool(*reset, "--shift-by", "-5")
    assert row() == [group, topic, "0", "3", "10", "7"]
    tool("ConsumerGroupCommand", "--group", group, "--topic", topic, "--delete-offsets")
    tool("ConsumerGroupCommand", "--group", group, "--delete")
    assert "GroupIdNotFoundException" in tool("ConsumerGroupCommand", "--describe", "--group", group).text


def test_a_cluster_of_one_says_so(tool: Tool, refused: Tool, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic()
    quorum = dict(line.split(":", 1) for line in tool("MetadataQuorumCommand", "describe", "--status").lines)
    assert quorum["MaxFollowerLag"].strip() == "0"
    (voter,) = json.loads(quorum["CurrentVoters"])
    assert str(voter["id"]) == quorum["LeaderId"].strip()
    assert "Leader" in tool("MetadataQuorumCommand", "describe", "--replication").lines[-1]
    election = ("LeaderElectionCommand", "--election-type", "preferred")
    assert tool(*election, "--all-topic-partitions").lines == []
    elected = tool(*election, "--topic", topic, "--partition", "0").text
    assert f"Valid replica already elected for partitions {topic}-0" in elected
    assert tool("ReassignPartitionsCommand", "--list").lines == ["No partition reassignments found."]
    plan = tmp_path / "plan.json"
    move = {"topic": topic, "partition": 0, "replicas": [voter["id"] + 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    execute = ("ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--execute")
    assert str(voter["id"] + 1) in refused(*execute).text


def test_what_a_cluster_has_none_of_is_empty_and_no_error(tool: Tool, new_topic: NewTopic) -> None:
    topic = new_topic()
    tool("ConsoleProducer", "--topic", topic, given="one\n")
    for entity in ("users", "clients", "ips", "client-metrics"):
        assert tool("ConfigCommand", "--describe", "--entity-type", entity).lines == []
    producers = tool("TransactionsCommand", "describe-producers", "--topic", topic, "--partition", "0").lines
    assert [line.split()[1] for line in producers] == ["ProducerEpoch", "0"]


def test_a_group_has_settings_of_its_own(tool: Tool, refused: Tool, fresh_name: Callable[[], str]) -> None:
    group = ("--entity-type", "groups", "--entity-name", fresh_name())
    alter = ("ConfigCommand", "--alter", *group)
    tool(*alter, "--add-config", "consumer.session.timeout.ms=50000")
    described = tool("ConfigCommand", "--describe", *group).text
    assert "consumer.session.timeout.ms=50000" in described
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000" in described
    assert "must be greater than" in refused(*alter, "--add-config", "consumer.session.timeout.ms=5000").text
    tool(*alter, "--delete-config", "consumer.session.timeout.ms")
    assert "50000" not in tool("ConfigCommand", "--describe", *group).text


def test_the_cluster_describes_itself(tool: Tool, bootstrap: str) -> None:
    (identity,) = tool("ClusterTool", "cluster-id").lines
    assert re.fullmatch(r"Cluster ID: \S{22}", identity)
    _, node = tool("ClusterTool", "list-endpoints").lines
    assert bootstrap == ":".join(node.split()[1:3])
    features = tool("FeatureCommand", "describe").text
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.3-IV0\b", features)


def test_every_offered_api_can_be_used(tool: Tool, bootstrap: str) -> None:
    head, *offers, _ = tool("BrokerApiVersionsCommand").lines
    assert head.startswith(bootstrap)
    offered = {}
    for line in offers:
        found = re.fullmatch(r"\t(\w+)\((\d+)\): (?:(.+) \[usable: (\d+)\]|UNSUPPORTED),?", line)
        assert found is not None, line
        if found[3]:
            offered[found[1]] = (int(found[2]), found[3], int(found[4]))
    assert offered["Produce"] == (0, "0 to 13", 13)
    assert offered["Fetch"] == (1, "4 to 18", 18)
    assert offered["DescribeTopicPartitions"] == (75, "0", 0)


def test_the_transactional_copier_copies_once_and_its_transactions_are_shown(
    tool: Tool, bootstrap: str, new_topic: NewTopic, fresh_name: Callable[[], str]
) -> None:
    source, target, transactional_id = new_topic(), new_topic(), fresh_name()
    values = [str(number) for number in range(2_000)]
    tool("ConsoleProducer", "--topic", source, given="\n".join(values) + "\n")
    topics = ("--input-topic", source, "--input-partition", "0", "--output-topic", target)
    sizes = ("--max-messages", "2000", "--transaction-size", "100", "--enable-random-aborts")
    names = ("--consumer-group", fresh_name(), "--transactional-id", transactional_id)
    copied = run("TransactionalMessageCopier", "--broker-list", bootstrap, *topics, *sizes, *names)
    assert copied.code == 0, copied.text
    committed = ("--isolation-level", "read_committed", "--max-messages", "2000", "--timeout-ms", "15000")
    read = tool("ConsoleConsumer", "--topic", target, "--from-beginning", *committed).lines
    assert [line for line in read if line.isdigit()] == values
    listed = tool("TransactionsCommand", "list").text
    assert re.search(rf"^{transactional_id}\s+\d+\s+\d+\s+CompleteCommit", listed, re.MULTILINE)
    described = tool("TransactionsCommand", "describe", "--transactional-id", transactional_id).lines[-1].split("\t")
    assert int(described[3]) >= 20, "an epoch per transaction"
    assert len(tool("TransactionsCommand", "find-hanging", "--topic", target).lines) == 1
