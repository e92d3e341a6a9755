"""Three controllers: one decides, the others follow, and nothing that was acknowledged is lost when one of them is."""

import asyncio
import errno
from collections.abc import Callable

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.controller.log import NotController, OutcomeUnknown
from riverlog.controller.snapshot_files import BadMetadata
from riverlog.metadata.broker_index import BrokerIndex
from riverlog.model.errors import Refusal
from riverlog.model.ids import Address
from tests.support.clusters import ClusterOfNodes
from tests.support.quorums import BLOCK, FOLDER, Hosts
from tests.support.virtual_time import run


def test_one_decides_and_all_follow() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3, observers=(4,))
        hosts.start()
        leader = await hosts.leader()
        assert [await leader.allocate() for _ in range(3)] == [0, BLOCK, 2 * BLOCK]
        await hosts.settled()
        assert [host.allocated for host in hosts.by_id.values()] == [3 * BLOCK] * 4
        followers = [host for host in hosts.by_id.values() if host is not leader]
        for host in followers:
            assert host.quorum.leader_id == leader.node
            with pytest.raises(NotController):
                await host.allocate()
        await hosts.stop()

    run(scenario())


def test_what_was_acknowledged_survives_the_loss_of_each_leader() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        given, lost = list[int](), 0
        for _ in range(6):
            leader = await hosts.leader()
            given += [await leader.allocate() for _ in range(5)]
            under_way = asyncio.ensure_future(leader.allocate())
            leader.crash()
            other = await hosts.leader(but=leader.node)
            given.append(await other.allocate())
            under_way.cancel()
            await asyncio.gather(under_way, return_exceptions=True)
            lost = leader.node
            leader.start()
            await hosts.settled()
        assert len(set(given)) == len(given)
        assert given == sorted(given)
        assert hosts[lost].allocated >= given[-1] + BLOCK
        await hosts.stop()

    run(scenario())


def test_a_leader_that_is_cut_off_says_that_it_does_not_know() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        old = await hosts.leader()
        first = await old.allocate()
        hosts.cut_off(old.node)
        unknown = asyncio.ensure_future(old.allocate())
        await asyncio.sleep(0.05)
        new = await hosts.leader(but=old.node)
        assert await new.allocate() == first + BLOCK
        with pytest.raises(OutcomeUnknown, match="whether this was done is not known"):
            await unknown
        assert not old.controller.is_active
        hosts.heal()
        await hosts.settled()
        assert old.allocated == first + 2 * BLOCK, "its own record was cut off"
        assert [host.failures for host in hosts.by_id.values()] == [[], [], []]
        await hosts.stop()

    run(scenario())


def test_one_that_nobody_hears_begins_no_election() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        leader = await hosts.leader()
        await leader.allocate()
        epoch = leader.quorum.epoch
        deaf = next(host for host in hosts.by_id.values() if host is not leader)
        hosts.cuts = {(other, deaf.node) for other in hosts.by_id}  # it is heard, and hears nobody
        await asyncio.sleep(30)
        assert (await hosts.leader()) is leader
        assert leader.quorum.epoch == epoch
        hosts.heal()
        await leader.allocate()
        await hosts.settled()
        await hosts.stop()

    run(scenario())


def test_a_leader_that_stops_hands_over_at_once() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        old = await hosts.leader()
        await old.allocate()
        await hosts.settled()
        before = asyncio.get_running_loop().time()
        await old.controller.close()
        old.is_up = False
        new = await hosts.leader(but=old.node)
        assert asyncio.get_running_loop().time() - before < 0.25, "no election had to be waited for"
        await new.allocate()
        await hosts.stop()

    run(scenario())


def test_a_leader_whose_process_ends_is_replaced_before_its_time_is_up() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        old = await hosts.leader()
        await old.allocate()
        await hosts.settled()
        before = asyncio.get_running_loop().time()
        old.crash()
        new = await hosts.leader(but=old.node)
        assert asyncio.get_running_loop().time() - before < 0.45, "a leader that is silent is waited for longer"
        await new.allocate()
        await hosts.stop()

    run(scenario())


def test_whoever_was_away_for_long_is_sent_a_snapshot() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3, metadata_log_max_record_bytes_between_snapshots="2048")
        hosts.start()
        leader = await hosts.leader()
        away = next(host for host in hosts.by_id.values() if host is not leader)
        away.crash()
        for _ in range(200):
            await leader.allocate()
        assert leader.log.storage.newest_snapshot is not None
        assert leader.log.storage.log.log_start_offset > 100
        away.start()
        await hosts.settled()
        assert away.allocated == leader.allocated
        assert away.log.storage.newest_snapshot is not None
        assert away.log.storage.log.log_start_offset > 100
        for host in list(hosts.by_id.values()):  # what each has written can be started from
            host.crash()
        for host in hosts.by_id.values():
            host.start()
        await hosts.settled()
        assert {host.allocated for host in hosts.by_id.values()} == {200 * BLOCK}
        await hosts.stop()

    run(scenario())


def test_a_snapshot_that_is_fetched_while_an_own_one_is_written_takes_its_place() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3, metadata_log_max_record_bytes_between_snapshots="2048")
        hosts.start()
        leader = await hosts.leader()
        await leader.allocate()
        await hosts.settled()
        away = next(host for host in hosts.by_id.values() if host is not leader)
        hosts.cut_off(away.node)
        storage, between_writes = away.log.storage, away.quorum.between_writes

        async def behind_a_long_flush(work: Callable[[], None]) -> None:
            await hosts.until(lambda: storage.log.log_start_offset > 0)  # where the fetched one ends
            await between_writes(work)

        away.quorum.between_writes = behind_a_long_flush  # type: ignore[method-assign]
        away.log.begin_snapshot(away.view.image, away.controller.loaded_offset)
        await hosts.until(lambda: storage.newest_snapshot is not None)
        for _ in range(100):
            await (await hosts.leader(but=away.node)).allocate()
        hosts.heal()
        await hosts.settled()
        assert away.failures == []
        assert away.allocated == leader.allocated
        await hosts.stop()

    run(scenario())


def test_what_is_committed_is_read_when_it_is_in_the_log() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        leader = await hosts.leader()
        away = next(host for host in hosts.by_id.values() if host is not leader)
        away.crash()
        for _ in range(50):
            await leader.allocate()
        away.start()
        seen, ends = list[int](), list[int]()
        while len(seen) < 2_000 and away.allocated < leader.allocated:
            seen.append(away.quorum.high_watermark)
            ends.append(away.log.end_offset)
            await asyncio.sleep(0.0002)
        assert all(committed <= end for committed, end in zip(seen, ends, strict=True))
        assert away.failures == []
        await hosts.settled()
        await hosts.stop()

    run(scenario())


def test_a_full_disk_keeps_one_out_and_not_the_others() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        leader = await hosts.leader()
        await leader.allocate()
        full = next(host for host in hosts.by_id.values() if host is not leader)
        full.disk.fail(0, errno.ENOSPC, on=("write",), lasting=True)
        for _ in range(20):
            await leader.allocate()
            await asyncio.sleep(1)
        assert full.failures == []
        full.disk.heal()
        await hosts.settled()
        leader.disk.fail(0, errno.ENOSPC, on=("write",), lasting=True)
        with pytest.raises(Refusal, match="There is no room for metadata"):
            await leader.allocate()
        leader.disk.heal()
        await hosts.until(lambda: leader.controller.is_active)
        await leader.allocate()
        await hosts.settled()
        await hosts.stop()

    run(scenario())


def test_a_damaged_vote_keeps_a_voter_from_voting_and_nothing_is_deleted() -> None:
    async def scenario() -> None:
        hosts = Hosts(1, 2, 3)
        hosts.start()
        leader = await hosts.leader()
        await leader.allocate()
        damaged = next(host for host in hosts.by_id.values() if host is not leader)
        damaged.crash()
        damaged.disk.damage(f"{FOLDER}/quorum-state", 3)
        before = damaged.disk.everything()
        with pytest.raises(BadMetadata, match="quorum-state cannot be read"):
            damaged.start()
        assert damaged.disk.everything() == before
        await leader.allocate()
        damaged.is_up = False
        await hosts.stop()

    run(scenario())


def test_whoever_takes_over_has_an_index_of_what_is_committed() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            await admin.create_topic("events", partitions=6)
            for _ in range(2):
                active = cluster.active()
                assert active is not None
                await cluster.stop(active)
                await cluster.until(lambda: cluster.active() is not None)
                await cluster.settled()
                other = cluster.active()
                assert other is not None
                controller = cluster.nodes[other].controller
                index = controller.index
                assert index is not None
                assert dict(index.led) == dict(BrokerIndex.of(controller.image).led) == {4: 3, 5: 3}
                await cluster.start(active)
        await cluster.stop()

    run(scenario())


def test_a_broker_is_silent_for_as_long_as_the_settings_say() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"}, broker_session_timeout_ms="1500")
        await cluster.start()
        image = cluster.nodes[1].controller
        cluster.network.unreachable.add(Address("n1", 9093))
        cluster.network.cut_off("n1", 9093)
        before = asyncio.get_running_loop().time()
        await cluster.until(lambda: image.image.brokers[4].fenced)
        assert 1.0 < asyncio.get_running_loop().time() - before < 2.5
        cluster.network.unreachable.clear()
        await cluster.until(lambda: not image.image.brokers[4].fenced)
        await cluster.stop()

    run(scenario())
