"""The topic through the client, on a whole node: fenced writers, whole transactions, reads by offset."""

import pytest

from riverlog import Admin
from riverlog.checkpoints.journal import TOPIC, Journal, Replaced
from riverlog.checkpoints.records import CHUNKS, FACTS, NewRecord
from riverlog.client.errors import KafkaError
from riverlog.wire.messages.end_txn import EndTxnRequest
from tests.support.members import ADDRESS, with_node
from tests.support.mishaps import Mishaps
from tests.support.world import Universe


def journal(universe: Universe) -> Journal:
    return Journal(ADDRESS, ports=universe.ports)


def test_what_is_written_is_read_in_order_and_by_its_offset() -> None:
    async def scenario(universe: Universe) -> None:
        first = journal(universe)
        await first.open()
        offsets = await first.write([NewRecord(FACTS, b"a", b"1"), NewRecord(CHUNKS, b"b", b"2" * 600_000)])
        offsets += await first.write([NewRecord(FACTS, b"a", None), NewRecord(CHUNKS, b"c", b"3")])
        assert [record.value async for record in first.facts()] == [b"1", None]
        assert [record.key async for record in first.chunks(offsets[1] + 1)] == [b"c"]
        assert await first.chunks_end() > offsets[3]
        found = await first.read(CHUNKS, offsets[1])
        assert found is not None
        assert (found.key, found.offset, len(found.value or b"")) == (b"b", offsets[1], 600_000)
        assert await first.read(FACTS, offsets[0] + 1) is None  # the end of a transaction is no record
        await first.close()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            assert (await admin.describe_configs(topic=TOPIC))["cleanup.policy"].value == "compact"

    with_node(scenario)


def test_who_opens_it_locks_the_one_before_out() -> None:
    async def scenario(universe: Universe) -> None:
        first, second = journal(universe), journal(universe)
        await first.open()
        await first.write([NewRecord(FACTS, b"a", b"1")])
        await second.open()
        with pytest.raises(Replaced):
            await first.write([NewRecord(FACTS, b"a", b"2")])
        assert [record.value async for record in second.facts()] == [b"1"]
        await first.close()
        await second.close()

    with_node(scenario)


def test_a_commit_whose_answer_is_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mishaps = Mishaps(monkeypatch)

    async def scenario(universe: Universe) -> None:
        only = journal(universe)
        await only.open()
        mishaps.lost.append(EndTxnRequest)
        offsets = await only.write([NewRecord(FACTS, b"a", b"1")])
        assert [record.offset async for record in only.facts()] == offsets
        await only.close()

    with_node(scenario)


def test_without_a_node_it_says_so() -> None:
    async def scenario(universe: Universe) -> None:
        with pytest.raises(KafkaError):
            await Journal("nowhere:9092", ports=universe.ports).open()

    with_node(scenario)
