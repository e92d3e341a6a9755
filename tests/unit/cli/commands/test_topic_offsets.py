"""Which partitions are meant, and what is refused before any broker is asked."""

from uuid import UUID

import pytest

from riverlog.cli.commands.topic_offsets import chosen_partitions
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.client.network.cluster import Partition, Topic
from riverlog.model.ids import NodeId, TopicId, TopicPartition

TOPICS = [
    Topic(name, TopicId(UUID(int=7)), tuple(Partition(each, NodeId(1), 0, (), ()) for each in range(2)))
    for name in "ab"
]


def test_all_partitions_or_those_that_are_named() -> None:
    assert chosen_partitions(TOPICS, ()) == [TopicPartition(name, each) for name in "ab" for each in (0, 1)]
    assert chosen_partitions(TOPICS, (1, 1)) == [TopicPartition("a", 1), TopicPartition("b", 1)]
    with pytest.raises(CommandError, match="topic a has partitions 0 to 1, not 2; leave -p out"):
        chosen_partitions(TOPICS, (2,))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("topics trim orders", "say what to delete, in one way"),
        ("topics trim orders --all --before-offset 3", "say what to delete, in one way"),
        ("topics trim orders --before-time yesterday", "'yesterday' is not a time"),
        ("topics offsets orders --at soon", "'soon' is not a time"),
    ],
)
def test_mistakes_are_one_sentence(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(f"riverlog: {sentence}")
