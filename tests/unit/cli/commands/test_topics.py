"""What is said about topics, and what is refused before any broker is asked."""

from uuid import UUID

import pytest

from riverlog.cli.commands.topics import description, lines_of
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.cli.topic_sizes import PartitionSize
from riverlog.client.admin.admin import ConfigEntry, ConfigSource
from riverlog.client.network.cluster import Partition, Topic
from riverlog.model.ids import NodeId, TopicId, TopicPartition

TOPIC = Topic(
    "orders",
    TopicId(UUID(int=7)),
    (
        Partition(0, NodeId(1), 4, (NodeId(1), NodeId(2), NodeId(3)), (NodeId(1), NodeId(2), NodeId(3))),
        Partition(1, NodeId(-1), 2, (NodeId(1), NodeId(2)), (NodeId(2),), (NodeId(1), NodeId(2))),
    ),
)
CONFIGS = {
    "retention.ms": ConfigEntry("retention.ms", "1000", ConfigSource.TOPIC),
    "cleanup.policy": ConfigEntry("cleanup.policy", "delete", ConfigSource.DEFAULT),
}
SIZES = {TopicPartition("orders", 0): PartitionSize(3, 10, 1_200)}


def test_a_topic_is_a_line_for_each_partition_and_each_setting_of_its_own() -> None:
    assert lines_of(description(TOPIC, CONFIGS, SIZES, every_setting=False)) == (
        "Topic orders: Partitions=2, ReplicationFactor=3\n"
        "Partition 0: Leader=1, ISR=[1,2,3], Start=3, End=10, Records=7, Size=1.2 KiB\n"
        "Partition 1: Leader=none, ISR=[2], Offline=[1,2]\n"
        "Config retention.ms=1000"
    )


def test_all_settings_can_be_shown() -> None:
    assert description(TOPIC, CONFIGS, SIZES, every_setting=True)["configs"] == {
        "cleanup.policy": "delete",
        "retention.ms": "1000",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["topics", "create"], "name a topic, as NAME or with --name NAME"),
        (["topics", "describe"], "name a topic, as NAME or with --name NAME"),
        (["topics", "alter", "a", "--name", "b"], "two topics were named, a and b; name one"),
        (["topics", "trim", "a"], "say what to delete, in one way: --before-offset N, --before-time TIME or --all"),
        (
            ["topics", "create", "a", "--config", "retention.ms"],
            "--config needs name=value, but 'retention.ms' was given",
        ),
        (["topics", "alter", "a"], "nothing to change: give --partitions, --config or --delete-config"),
        (
            ["topics", "list", "-b", "a:b"],
            '\'a:b\' is no bootstrap address; write "host:port", for example "127.0.0.1:9092"',
        ),
    ],
)
def test_mistakes_are_found_before_a_broker_is_asked(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    assert capsys.readouterr().err == f"riverlog: {sentence}\n"


@pytest.mark.parametrize("partitions", ["0", "-1", "many", "2147483648"])
def test_a_number_of_partitions_is_positive(partitions: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "create", "a", "--partitions", partitions]) == ExitCode.USAGE
    assert "--partitions" in capsys.readouterr().err
