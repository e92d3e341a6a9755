"""What is said about groups, and what is refused before any broker is asked."""

import pytest

from riverlog.cli.commands.groups import STATES, description, lines_of, partitions_meant
from riverlog.cli.group_offsets import GroupLag, PartitionLag
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.client.admin.groups import GroupDescription, MemberDescription
from riverlog.groups.classic.group import ClassicPhase
from riverlog.groups.consumer.group import ConsumerPhase
from riverlog.model.ids import TopicPartition

PARTITIONS = tuple(TopicPartition("orders", index) for index in range(3))
FIRST = MemberDescription("Consumer-1", None, "app", "10.0.0.1", PARTITIONS[:2])
SECOND = MemberDescription("x-17", "Consumer-2", "app", "10.0.0.2", ())
STANDING = GroupLag(
    GroupDescription("billing", "classic", "Stable", "range", (FIRST, SECOND)),
    (
        PartitionLag(PARTITIONS[0], 10, 70, FIRST),
        PartitionLag(PARTITIONS[1], 0, 40, FIRST),
        PartitionLag(PARTITIONS[2], None, 5, None),
    ),
)


def test_a_group_is_a_line_and_one_for_each_member() -> None:
    assert lines_of(STANDING) == (
        "Group billing: State=Stable, Type=classic, Assignor=range, Members=2, Lag=105\n"
        "Consumer-1: Partitions [0, 1], Lag: 100\n"
        "Consumer-2: Partitions [], Lag: 0"
    )


def test_partitions_of_several_topics_are_named_in_full() -> None:
    other = TopicPartition("refunds", 0)
    member = MemberDescription("m", None, "app", "h", (other, PARTITIONS[0]))
    group = GroupDescription("g", "consumer", "Stable", "uniform", (member,))
    group_lag = GroupLag(group, (PartitionLag(PARTITIONS[0], 0, 1, member), PartitionLag(other, 0, 2, member)))
    assert lines_of(group_lag).splitlines()[1] == "m: Partitions [orders-0, refunds-0], Lag: 3"


def test_a_program_is_told_the_same() -> None:
    row = description(STANDING)
    assert row["lag"] == 105
    assert row["members"] == [
        {
            "member": "Consumer-1",
            "instance": None,
            "client": "app",
            "host": "10.0.0.1",
            "partitions": ["orders-0", "orders-1"],
            "lag": 100,
        },
        {"member": "x-17", "instance": "Consumer-2", "client": "app", "host": "10.0.0.2", "partitions": [], "lag": 0},
    ]


def test_a_topic_that_is_named_again_means_both() -> None:
    assert partitions_meant(["t:0,1", "u:3", "t:2,1"]) == {"t": (0, 1, 2), "u": (3,)}
    assert partitions_meant(["t:0", "t"]) == partitions_meant(["t", "t:0"]) == {"t": ()}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["groups", "reset-offsets"], "name a group, as NAME or with --group NAME"),
        (["groups", "reset-offsets", "a", "--group", "b"], "two groups were named, a and b; name one"),
        (["groups", "delete"], "name a group, as NAME or with --group NAME"),
        (["groups", "reset-offsets", "g", "--to-latest"], "say which topics"),
        (["groups", "reset-offsets", "g", "--topic", "t"], "say where to, in one way"),
        (["groups", "reset-offsets", "g", "--topic", "t", "--to-latest", "--shift-by", "1"], "say where to"),
        (["groups", "reset-offsets", "g", "--topic", "t:x", "--to-latest"], "--topic takes TOPIC or TOPIC:0,1"),
        (["groups", "reset-offsets", "g", "--topic", "t", "--by-duration", "soon"], "is not a length of time"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_every_state_can_be_asked_for() -> None:
    assert {*ClassicPhase, *ConsumerPhase} <= set(STATES)
