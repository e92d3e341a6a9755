"""The rules of transactions, asked of Apache Kafka and of a node with the same bytes: both give the same answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from riverlog.model.ids import Address
from tests.conformance.transaction_lines import Talk, Writer

Case = Callable[[Talk], Awaitable[None]]
CASES: Final[list[Case]] = []


def case(told: Case) -> Case:
    CASES.append(told)
    return told


async def begun(talk: Talk, *, version: int = 12) -> Writer:
    """Return a producer with an open transaction, by the newest rules or those before."""
    writer = await talk.init()
    if version < 12:
        await talk.add(writer)
    await talk.write(writer, version=version)
    return writer


async def ends(talk: Talk, writer: Writer, *, version: int = 5) -> None:
    """Try both ends of a transaction for an epoch and those around it."""
    for epochs in (-2, -1, 1):
        if writer.epoch + epochs >= 0:
            for commits in (True, False):
                await talk.end(writer.moved(epochs), commits=commits, version=version)


@case
async def a_commit_repeated_and_followed(talk: Talk) -> None:
    first = await begun(talk)
    second = await talk.end(first, commits=True)
    await talk.describe()
    await talk.end(first, commits=True)
    await talk.end(first, commits=False)
    await talk.end(second, commits=True)
    await talk.describe()
    third = await talk.end(second, commits=False)
    await talk.describe()
    await talk.end(first, commits=True)
    await talk.end(second, commits=False)
    await talk.end(second, commits=True)
    await talk.write(third)
    await talk.end(third, commits=True)


@case
async def an_abort_repeated_and_followed(talk: Talk) -> None:
    first = await begun(talk)
    second = await talk.end(first, commits=False)
    await talk.describe()
    await talk.end(first, commits=False)
    await talk.end(first, commits=True)
    await talk.end(second, commits=True)
    await talk.describe()
    await talk.end(second, commits=False)
    await talk.describe()
    await ends(talk, second)


@case
async def ends_of_nothing(talk: Talk) -> None:
    first = await talk.init()
    await talk.end(first, commits=True)
    await talk.end(first, commits=True, version=4)
    await talk.end(first, commits=False, version=4)
    await ends(talk, first)
    await talk.end(Writer(first.id + 999, 0), commits=True)
    second = await talk.end(first, commits=False)
    await talk.describe()
    await talk.end(first, commits=False)
    await talk.end(second, commits=False)
    await talk.describe()


@case
async def ends_with_other_epochs_while_open(talk: Talk) -> None:
    first = await begun(talk)
    second = await talk.end(first, commits=True)
    third = await talk.init(second)
    await talk.write(third)
    for version in (5, 4, 1):
        await ends(talk, third, version=version)
        await talk.end(Writer(third.id + 999, third.epoch), commits=True, version=version)
    await talk.describe()


@case
async def older_rules(talk: Talk) -> None:
    writer = await begun(talk, version=11)
    await talk.describe()
    await talk.end(writer, commits=True, version=4)
    await talk.describe()
    await talk.end(writer, commits=True, version=4)
    await talk.end(writer, commits=False, version=4)
    await talk.end(writer, commits=True, version=5)
    await talk.add(writer)
    await talk.write(writer, 1, version=11)
    await talk.end(writer, commits=False, version=4)
    await talk.end(writer, commits=False, version=4)
    await talk.end(writer, commits=True, version=4)
    await ends(talk, writer, version=4)


@case
async def rules_mixed_within_a_transaction(talk: Talk) -> None:
    writer = await begun(talk, version=11)
    writer = await talk.end(writer, commits=True, version=5)
    await talk.describe()
    await talk.write(writer)
    await talk.end(writer, commits=True, version=4)
    await talk.describe()
    await talk.end(writer, commits=True, version=5)
    await talk.write(writer, 1)
    await talk.end(writer, commits=False, version=5)
    await talk.describe()


@case
async def writes_that_come_too_late_or_too_early(talk: Talk) -> None:
    first = await begun(talk)
    second = await talk.end(first, commits=True)
    for version in (12, 11):
        await talk.write(first, 1, version=version)
        await talk.write(first, 0, version=version)
        await talk.write(second.moved(1), version=version)
        await talk.write(second, 5, version=version)
        await talk.write(Writer(second.id + 999, 0), version=version)
    await talk.write(second, version=11)
    await talk.write(second, transactional=False)
    await talk.write(first, transactional=False)
    await talk.describe()
    await talk.write(second)
    await talk.write(second)
    await talk.write(second, 2)
    await talk.write(second, 1)
    await talk.write(second, 1, partition=1)
    await talk.write(first, partition=1)
    await talk.describe()
    await talk.end(second, commits=True)


@case
async def writes_without_a_transaction(talk: Talk) -> None:
    writer = await talk.init()
    await talk.write(writer, version=11)
    await talk.write(writer, 3, version=12)
    await talk.write(writer.moved(1), version=12)
    await talk.add(writer)
    await talk.write(writer, partition=1, version=11)
    await talk.write(writer, version=11)
    await talk.end(writer, commits=True, version=4)
    await talk.write(writer, 1, version=11)


@case
async def partitions_added(talk: Talk) -> None:
    first = await begun(talk)
    for version in (3, 1):
        await talk.add(first.moved(1), version=version)
        await talk.add(Writer(first.id + 999, 0), version=version)
        await talk.add(first, topic="not-there", version=version)
        await talk.add(first, partition=9, version=version)
    second = await talk.end(first, commits=True)
    await talk.add(first)
    await talk.add(second.moved(1))
    await talk.add(second)
    await talk.describe()


@case
async def producers_that_go_on(talk: Talk) -> None:
    first = await talk.init()
    second = await talk.init(first)
    await talk.init(first)
    third = await talk.init(second)
    await talk.init(first)
    await talk.init(third.moved(1))
    await talk.init(Writer(third.id + 999, 0))
    await talk.init(Writer(third.id, -1))
    await talk.init(Writer(-1, 3))
    await talk.init(third, version=3)
    await talk.describe()
    await talk.init()
    await talk.init(third)
    await talk.describe()


@case
async def producers_that_go_on_after_an_end(talk: Talk) -> None:
    first = await begun(talk)
    second = await talk.end(first, commits=True)
    await talk.init(first)
    third = await talk.init(second)
    await talk.write(third)
    fourth = await talk.end(third, commits=False)
    await talk.init(fourth)
    await talk.describe()


@case
async def unknown_ids_and_times(talk: Talk) -> None:
    await talk.end(Writer(4_000_000, 0), commits=True)
    await talk.add(Writer(4_000_000, 0))
    await talk.write(Writer(4_000_000, 0), version=11)
    await talk.write(Writer(4_000_000, 0))
    await talk.init(timeout_ms=0)
    await talk.init(timeout_ms=900_001)
    await talk.describe()
    await talk.init(Writer(4_000_000, 3))
    await talk.describe()


@case
async def a_new_producer_takes_over(talk: Talk) -> None:
    zombie = await begun(talk)
    successor = await talk.init()
    await talk.describe()
    for version in (5, 4, 1):
        await talk.end(zombie, commits=True, version=version)
        await talk.end(zombie.moved(1), commits=False, version=version)
    await talk.add(zombie)
    await talk.add(zombie, version=1)
    for version in (12, 11):
        await talk.write(zombie, 1, version=version)
        await talk.write(zombie, partition=1, version=version)
    await talk.add_offsets(zombie)
    await talk.commit_offsets(zombie)
    await talk.commit_offsets(zombie, version=3)
    await talk.write(successor)
    await talk.write(zombie, 1)
    await talk.end(successor, commits=True)


@case
async def time_runs_out(talk: Talk) -> None:
    writer = await talk.init(timeout_ms=200)
    await talk.write(writer)
    await talk.await_state("CompleteAbort")
    await talk.describe()
    await talk.end(writer, commits=True)
    await talk.end(writer, commits=False)
    await talk.end(writer, commits=False, version=4)
    await talk.write(writer, 1)
    await talk.write(writer, 1, version=11)
    await talk.add(writer)
    await talk.end(writer.moved(1), commits=False)
    await talk.describe()
    await talk.init(writer)
    await talk.describe()


@case
async def offsets_committed(talk: Talk) -> None:
    writer = await talk.init()
    await talk.commit_offsets(writer, version=3)
    await talk.commit_offsets(writer, version=4)
    await talk.commit_offsets(writer.moved(1), version=5)
    await talk.commit_offsets(Writer(writer.id + 999, 0), version=5)
    await talk.commit_offsets(writer, member="nobody", generation=3)
    await talk.commit_offsets(writer, generation=3)
    await talk.describe()
    await talk.commit_offsets(writer)
    await talk.describe()
    second = await talk.end(writer, commits=True)
    await talk.commit_offsets(writer)
    await talk.add_offsets(writer)
    await talk.add_offsets(second.moved(1))
    await talk.add_offsets(Writer(second.id + 999, 0))
    await talk.add_offsets(writer, version=1)
    await talk.add_offsets(second)
    await talk.commit_offsets(second, version=3)
    await talk.end(second, commits=True, version=4)
    await talk.commit_offsets(second, version=3)


@case
async def markers_of_coordinators(talk: Talk) -> None:
    writer = await talk.init(await talk.init())
    await talk.write(writer)
    for rules in (0, 1, 2):
        await talk.mark(writer.moved(-1), commits=True, coordinator_epoch=5, transaction_version=rules)
    await talk.mark(writer, commits=False, coordinator_epoch=5, transaction_version=2)
    await talk.mark(writer, commits=False, coordinator_epoch=5, transaction_version=0)
    await talk.mark(writer, commits=False, coordinator_epoch=5, transaction_version=0)
    await talk.mark(writer, commits=False, coordinator_epoch=4, transaction_version=0)
    await talk.mark(writer.moved(1), commits=False, coordinator_epoch=4, transaction_version=2)
    await talk.mark(writer.moved(1), commits=False, coordinator_epoch=6, transaction_version=2)
    await talk.mark(writer.moved(1), commits=False, coordinator_epoch=6, transaction_version=2)
    await talk.mark(writer.moved(1), commits=True, coordinator_epoch=6, transaction_version=2)
    await talk.mark(writer, commits=False, coordinator_epoch=7, transaction_version=0)
    await talk.mark(writer, commits=False, coordinator_epoch=7, transaction_version=0, partition=1)
    await talk.mark(writer, commits=False, coordinator_epoch=7, transaction_version=2, partition=1)
    await talk.mark(writer, commits=False, coordinator_epoch=7, transaction_version=0, partition=9)
    await talk.write(writer, 1)


@case
async def markers_after_others(talk: Talk) -> None:
    writer = await begun(talk)
    for epochs, rules in ((0, 1), (0, 1), (1, 2), (1, 2), (2, 2), (2, 0), (3, 0)):
        await talk.mark(writer.moved(epochs), commits=True, coordinator_epoch=5, transaction_version=rules)
    await talk.write(writer.moved(3))
    await talk.describe()


@case
async def a_marker_before_the_end(talk: Talk) -> None:
    writer = await begun(talk)
    await talk.mark(writer.moved(1), commits=False, coordinator_epoch=0, transaction_version=2)
    await talk.write(writer, 1)
    await talk.write(writer, partition=1)
    successor = await talk.end(writer, commits=True)
    await talk.mark(writer, commits=False, coordinator_epoch=0, transaction_version=0)
    await talk.mark(successor, commits=False, coordinator_epoch=-1, transaction_version=0)
    await talk.write(successor)
    await talk.end(successor, commits=True)


@case
async def time_runs_out_and_the_producer_goes_on(talk: Talk) -> None:
    for asks_for_epoch in (True, False):
        writer = await talk.init(timeout_ms=200)
        await talk.write(writer)
        await talk.await_state("CompleteAbort")
        successor = await (talk.init(writer) if asks_for_epoch else talk.end(writer, commits=False))
        await talk.describe()
        await talk.write(successor)
        await talk.end(successor, commits=True)


@case
async def time_runs_out_by_the_older_rules(talk: Talk) -> None:
    writer = await talk.init(timeout_ms=200)
    await talk.add(writer)
    await talk.write(writer, version=11)
    await talk.await_state("CompleteAbort")
    for commits in (True, False):
        await talk.end(writer, commits=commits, version=4)
    await talk.init(writer.moved(1))
    await talk.init(writer)


@case
async def a_producer_with_an_open_transaction_goes_on(talk: Talk) -> None:
    for version in (12, 11):
        first = await begun(talk, version=version)
        second = await talk.init(first)
        await talk.describe()
        await talk.init(first)
        await talk.init(second)
        await talk.describe()


@case
async def writes_outside_of_the_open_transaction(talk: Talk) -> None:
    writer = await begun(talk)
    await talk.write(writer, 1, transactional=False)
    await talk.write(writer, 1)
    await talk.end(writer, commits=True)


async def told(address: Address, name: str, story: Case) -> list[str]:
    talk = await Talk.open(address, name)
    try:
        await story(talk)
    finally:
        talk.close()
    return talk.said


@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
def test_both_answer_alike(kafka: Address, riverlog: Address, story: Case) -> None:
    name = story.__name__
    assert asyncio.run(told(riverlog, name, story)) == asyncio.run(told(kafka, name, story))
