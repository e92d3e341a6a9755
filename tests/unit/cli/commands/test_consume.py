"""Where reading starts and ends, which partitions are read, and how records are written."""

import asyncio
from typing import Any

import pytest

from riverlog import Admin, Consumer
from riverlog.cli.commands.consume import (
    RELEASE_SECONDS_MAX,
    SHARE_SECONDS_MAX,
    Ends,
    _print,
    choose,
    position_of,
    printer,
    where_to_start,
    where_to_stop,
)
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.expressions import LogEdge, TimestampMs
from riverlog.cli.terminal.render import OutputFormat
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import TimedOut
from riverlog.model.ids import LeaderEpoch, Offset, TopicPartition
from riverlog.records.record import Header
from tests.support.members import ADDRESS, TOPIC, Member, a_node, write
from tests.support.virtual_time import run
from tests.support.world import Universe

PARTITION = TopicPartition("orders", 0)
RECORD = ConsumerRecord("orders", 0, Offset(5), 7, None, b"\x1b[1m", (Header("h", b"v"),), LeaderEpoch(0))


def test_without_options_reading_starts_at_the_end() -> None:
    assert where_to_start(from_beginning=False, offset=None, from_time=None) is LogEdge.END


def test_each_option_names_a_start() -> None:
    assert where_to_start(from_beginning=True, offset=None, from_time=None) is LogEdge.BEGINNING
    assert where_to_start(from_beginning=False, offset="-3", from_time=None) == -3
    moment = where_to_start(from_beginning=False, offset=None, from_time="1700000000000")
    assert isinstance(moment, TimestampMs)
    assert moment == 1_700_000_000_000


def test_reading_stops_where_it_is_told_to() -> None:
    assert where_to_stop(to_offset=None, to_time=None, exit_at_end=False) is None
    assert where_to_stop(to_offset=None, to_time=None, exit_at_end=True) is LogEdge.END
    assert where_to_stop(to_offset=7, to_time=None, exit_at_end=True) == 7
    assert isinstance(where_to_stop(to_offset=None, to_time="1700000000000", exit_at_end=False), TimestampMs)
    with pytest.raises(CommandError, match="exclude each other"):
        where_to_stop(to_offset=7, to_time="now", exit_at_end=False)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("consume", "name topics, as in `riverlog consume orders`, or give --pattern REGEX"),
        ("consume orders --pattern .*", "name topics, as in `riverlog consume orders`, or give --pattern REGEX"),
        ("consume --pattern (", "--pattern '(' is no regular expression"),
        ("consume orders -g g --to-offset 3", "a group decides what its members read"),
        ("consume orders -g g -p 0", "a group decides what its members read"),
    ],
)
def test_mistakes_are_one_sentence(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(f"riverlog: {sentence}")


def test_two_starts_are_one_too_many() -> None:
    with pytest.raises(CommandError, match="exclude each other"):
        where_to_start(from_beginning=True, offset="0", from_time=None)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [(LogEdge.BEGINNING, 10), (LogEdge.END, 20), (10, 10), (15, 15), (20, 20), (-1, 19), (-10, 10), (-500, 10)],
)
def test_a_start_becomes_an_offset(begin: LogEdge | int, expected: int) -> None:
    assert position_of(PARTITION, begin, log_start_offset=10, log_end_offset=20) == expected


@pytest.mark.parametrize("begin", [0, 9, 21])
def test_an_offset_that_is_not_there_is_refused(begin: int) -> None:
    with pytest.raises(
        CommandError, match=r"orders-0 has no offset \d+: it begins at 10 and ends before 20"
    ) as trouble:
        position_of(PARTITION, begin, log_start_offset=10, log_end_offset=20)
    assert trouble.value.exit_code == ExitCode.REFUSED


def test_partitions_are_all_or_those_named() -> None:
    assert choose("t", 2, None) == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert choose("t", 3, [2, 0, 2]) == [TopicPartition("t", 2), TopicPartition("t", 0)]
    with pytest.raises(CommandError, match="topic t has partitions 0 to 2, not 3"):
        choose("t", 3, [3])


@pytest.mark.parametrize(
    ("template", "output", "terminal", "expected"),
    [
        (None, None, False, b"\x1b[1m\n"),
        (None, OutputFormat.TABLE, False, b"\x1b[1m\n"),
        (None, None, True, b"\\x1b[1m\n"),
        ("%o:%s;", None, True, b"5:\x1b[1m;"),
        (None, OutputFormat.YAML, False, b"- topic: orders\n  partition: 0\n  offset: 5\n  timestamp_ms: 7\n"),
        (None, OutputFormat.JSON, True, b'{"topic": "orders", "partition": 0, "offset": 5, '),
    ],
)
def test_records_are_written_as_asked(
    template: str | None, output: OutputFormat | None, terminal: bool, expected: bytes
) -> None:
    assert printer(template, output, null=False, terminal=terminal)(RECORD).startswith(expected)


def test_null_is_shown_where_that_is_wanted() -> None:
    nothing = RECORD._replace(value=None)
    assert printer(None, None, null=True, terminal=False)(nothing) == b"NULL\n"
    assert printer(None, None, null=True, terminal=True)(nothing) == b"NULL\n"
    assert printer("%k|%s", None, null=True, terminal=False)(nothing) == b"NULL|NULL"
    assert printer("%k|%s", None, null=False, terminal=False)(nothing) == b"|"


def test_a_format_and_an_output_are_one_too_many() -> None:
    with pytest.raises(CommandError, match="exclude each other"):
        printer("%s", OutputFormat.JSON, null=False, terminal=False)


def a_member(universe: Universe, **settings: Any) -> Consumer:
    return Consumer(ADDRESS, group="billing", auto_offset_reset="earliest", ports=universe.ports, **settings)


async def read_to_the_end(consumer: Consumer, share_seconds_max: float = SHARE_SECONDS_MAX) -> int:
    chosen = await consumer.partitions(TOPIC)
    ends = Ends(consumer, await consumer.end_offsets(chosen), share_seconds_max)
    consumer.subscribe([TOPIC])
    return await _print(consumer, lambda _record: b"", count=None, ends=ends, waiting="")


@pytest.mark.parametrize(
    ("protocol", "share_seconds_max"), [("classic", SHARE_SECONDS_MAX), ("consumer", RELEASE_SECONDS_MAX)]
)
async def test_a_member_waits_for_what_one_had_that_died(
    protocol: Any, share_seconds_max: float, capfd: pytest.CaptureFixture[str]
) -> None:
    async with a_node() as universe:
        died = Member(universe, "died", group_protocol=protocol, session_timeout_ms=45_000)
        await asyncio.sleep(10)
        await died.die()
        await write(universe, 8)
        async with a_member(universe, group_protocol=protocol) as consumer:
            assert await read_to_the_end(consumer, share_seconds_max) == 8
    assert capfd.readouterr().err.count("has assigned no partitions yet") == (protocol == "classic")


async def test_a_member_for_which_no_partition_is_left_ends_with_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    async with a_node(partitions=1) as universe:
        await write(universe, 4, partitions=1)
        other = Member(universe, "other")
        await asyncio.sleep(10)
        async with a_member(universe) as consumer:
            assert await read_to_the_end(consumer) == 0
            assert other.partitions == [0]
        await other.stop()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("seconds", [0.5, 10.0], ids=["while joining", "as a member without partitions"])
def test_a_member_that_nobody_answers_does_not_end_as_if_it_were_done(
    seconds: float, capfd: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node(group_initial_rebalance_delay_ms="3000")
        await node.start()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic(TOPIC, partitions=1)
        await write(universe, 4, partitions=1)
        other = Member(universe, "other")
        await asyncio.sleep(10)
        async with a_member(universe) as consumer:
            reading = asyncio.create_task(read_to_the_end(consumer, share_seconds_max=60.0))
            await asyncio.sleep(seconds)
            await node.stop()
            with pytest.raises(TimedOut, match="no answer for 30 s: no broker could be reached"):
                await reading
        await other.die()

    run(scenario())
    assert capfd.readouterr().out == ""


def test_a_reader_before_its_end_gives_up_when_nobody_answers(capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic(TOPIC, partitions=1)
        await write(universe, 4, partitions=1)
        async with Consumer(ADDRESS, auto_offset_reset="earliest", ports=universe.ports) as consumer:
            (partition,) = await consumer.partitions(TOPIC)
            consumer.assign([partition])
            ends = Ends(consumer, {partition: 5})
            reading = asyncio.create_task(_print(consumer, lambda _record: b"x", count=None, ends=ends, waiting=""))
            await asyncio.sleep(2)
            await node.stop()
            with pytest.raises(TimedOut, match="no answer for 30 s"):
                await reading

    run(scenario())
    assert capfd.readouterr().out == "xxxx"
