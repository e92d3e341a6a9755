"""Controllers as processes: killed, paused, loaded, and what brokers and those who administer notice of it.

`QUORUM_KILLS=20` and `QUORUM_LOAD_SECONDS=300` are the long forms.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Final

from riverlog.client.admin.admin import Admin
from riverlog.client.errors import KafkaError
from riverlog.client.network.connection import Connection
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.wire.messages.add_raft_voter import AddRaftVoterRequest
from riverlog.wire.messages.endpoints import ListenerEndpoint
from riverlog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from riverlog.world.network import TcpNetwork
from tests.support.cluster_processes import BOTH, BROKER, CLUSTER_ID, CONTROLLER, ClusterProcesses

KILLS: Final = int(os.environ.get("QUORUM_KILLS", "2"))
LOAD_SECONDS: Final = float(os.environ.get("QUORUM_LOAD_SECONDS", "8"))
FAIL_OVER_SECONDS: Final = 5.0
"""What is asserted; what is measured is printed. A machine with other work on it may be late."""


class Administrator:
    """Creates topics and adds partitions through one broker, for as long as it is told to, and notes what it hears."""

    def __init__(self, bootstrap: str) -> None:
        self.created: set[str] = set()
        self.unknown: set[str] = set()
        self.partitions = 1
        self.most = 1
        """The partitions of the grown topic if all that is not known was done."""
        self.successes: list[float] = []
        self._bootstrap = bootstrap
        self._number = 0
        self._stopping = False

    async def run(self) -> None:
        async with Admin(self._bootstrap, timeout_ms=10_000) as admin:
            await admin.create_topic("grown", partitions=1)
            while not self._stopping:
                await self._create(admin)
                await self._grow(admin)

    def stop(self) -> None:
        self._stopping = True

    async def _create(self, admin: Admin) -> None:
        self._number += 1
        name = f"topic-{self._number:05}"
        try:
            await admin.create_topic(name, partitions=1)
        except KafkaError as error:
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and "may have created it" not in error.message:
                raise AssertionError(f"{name} was created twice") from error
            self.unknown.add(name)
            return
        self.created.add(name)
        self.successes.append(time.monotonic())

    async def _grow(self, admin: Admin) -> None:
        wanted = self.partitions + 1
        try:
            await admin.create_partitions("grown", wanted)
        except KafkaError:
            self.most = max(self.most, wanted)
            [topic] = await self._described(admin)
            self.partitions = topic
            return
        self.partitions = wanted
        self.most = max(self.most, wanted)
        self.successes.append(time.monotonic())

    async def _described(self, admin: Admin) -> list[int]:
        while True:
            try:
                return [len(each.partitions) for each in await admin.describe_topics("grown")]
            except KafkaError:
                await asyncio.sleep(0.05)


async def _active(bootstrap: str) -> int:
    """Return which controller leads, as soon as somebody says so."""
    async with Admin(bootstrap, timeout_ms=10_000) as admin:
        deadline = time.monotonic() + 30
        while True:
            try:
                return (await admin.describe_quorum()).leader
            except KafkaError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)


def test_the_active_controller_is_killed_under_a_stream_of_requests(tmp_path: Path) -> None:
    async def scenario(cluster: ClusterProcesses) -> list[float]:
        bootstrap = cluster.bootstrap(4)
        administrator = Administrator(bootstrap)
        working, gaps = asyncio.ensure_future(administrator.run()), list[float]()
        for _ in range(KILLS):
            done = len(administrator.successes)
            while len(administrator.successes) < done + 5:
                await asyncio.wait({working}, timeout=0.01)
                assert not working.done(), working
            leader = await _active(bootstrap)
            killed_at = time.monotonic()
            cluster.kill(leader)
            while not administrator.successes or administrator.successes[-1] < killed_at:
                assert time.monotonic() < killed_at + 30, cluster.log_tail(4)
                await asyncio.wait({working}, timeout=0.002)
                assert not working.done(), working
            gaps.append(next(each for each in administrator.successes if each > killed_at) - killed_at)
            await asyncio.to_thread(cluster.start, leader)
        administrator.stop()
        await working
        async with Admin(bootstrap) as admin:
            names = {topic.name for topic in await admin.list_topics()}
            assert administrator.created <= names, "what was acknowledged is there"
            assert names <= administrator.created | administrator.unknown | {"grown"}
            [grown] = await admin.describe_topics("grown")
            assert administrator.partitions <= len(grown.partitions) <= administrator.most, "none was applied twice"
        return gaps

    with ClusterProcesses(tmp_path, {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: BROKER}) as cluster:
        cluster.start()
        gaps = sorted(asyncio.run(scenario(cluster)))
        print(f"next success after kill -9 of the active controller: {[round(gap, 3) for gap in gaps]}")
        assert gaps[-1] < FAIL_OVER_SECONDS


def test_a_paused_leader_is_replaced_and_follows_when_it_wakes(tmp_path: Path) -> None:
    async def scenario(cluster: ClusterProcesses) -> None:
        bootstrap = cluster.bootstrap(4)
        async with Admin(bootstrap, timeout_ms=20_000) as admin:
            await admin.create_topic("before")
            old = await _active(bootstrap)
            cluster.pause(old)
            paused_at = time.monotonic()
            while True:
                try:
                    await admin.create_topic("meanwhile")
                    break
                except KafkaError as error:
                    if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                        break
            print(f"next success after SIGSTOP of the active controller: {time.monotonic() - paused_at:.3f}")
            new = await _active(bootstrap)
            assert new != old
            epoch = (await admin.describe_quorum()).epoch
            cluster.resume(old)
            await asyncio.sleep(2)
            described = await admin.describe_quorum()
            assert (described.leader, described.epoch) == (new, epoch), "whoever wakes disturbs nobody"
            assert {each.node_id: described.lag(each) for each in described.voters}[old] == 0
            assert [topic.name for topic in await admin.list_topics()] == ["before", "meanwhile"]

    with ClusterProcesses(tmp_path, {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: BROKER}) as cluster:
        cluster.start()
        asyncio.run(scenario(cluster))


async def _change_voters(cluster: ClusterProcesses, leader: int, request: object) -> ErrorCode:
    """Ask the leader for another set of voters, again where it has to wait for something."""
    host, port = cluster.controller_address(leader).split(":")
    deadline = time.monotonic() + 30
    while True:
        connection = await Connection.open(
            TcpNetwork(), Address(host, int(port)), client_id="test", connect_seconds=2, request_seconds=10
        )
        code = ErrorCode((await connection.request(request)).error_code)
        connection.close()
        if code is not ErrorCode.REQUEST_TIMED_OUT or time.monotonic() > deadline:
            return code
        await asyncio.sleep(0.1)


def test_a_quorum_of_one_grows_to_five_and_shrinks_to_three_under_load(tmp_path: Path) -> None:
    async def scenario(cluster: ClusterProcesses) -> None:
        bootstrap = cluster.bootstrap(9)
        administrator = Administrator(bootstrap)
        working = asyncio.ensure_future(administrator.run())
        for node in (2, 3, 4, 5):
            leader, voter = await _active(bootstrap), cluster.voter(node)
            [endpoint] = voter.endpoints
            assert voter.key.directory_id is not None
            listener = ListenerEndpoint(endpoint.listener, endpoint.host, endpoint.port)
            request = AddRaftVoterRequest(CLUSTER_ID, 10_000, node, voter.key.directory_id, [listener])
            assert await _change_voters(cluster, leader, request) is ErrorCode.NONE
        for node in (1, 5):
            leader, key = await _active(bootstrap), cluster.voter(node).key
            assert key.directory_id is not None
            request = RemoveRaftVoterRequest(CLUSTER_ID, node, key.directory_id)
            assert await _change_voters(cluster, leader, request) is ErrorCode.NONE
        cluster.kill(1)
        cluster.kill(5)
        done = len(administrator.successes)
        while len(administrator.successes) < done + 10:
            await asyncio.wait({working}, timeout=0.01)
            assert not working.done(), working
        administrator.stop()
        await working
        async with Admin(bootstrap) as admin:
            described = await admin.describe_quorum()
            assert sorted(each.node_id for each in described.voters) == [2, 3, 4]
            assert administrator.created <= {topic.name for topic in await admin.list_topics()}
            assert administrator.unknown == set(), "nobody who administers has noticed"

    roles = {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: CONTROLLER, 5: CONTROLLER, 9: BROKER}
    with ClusterProcesses(tmp_path, roles, voters=(1,)) as cluster:
        cluster.start()
        asyncio.run(scenario(cluster))


def test_full_load_on_combined_nodes_brings_no_election(tmp_path: Path) -> None:
    async def scenario(cluster: ClusterProcesses) -> int:
        async with Admin(cluster.bootstrap()) as admin:
            small = {"retention.bytes": "30000000", "segment.bytes": "10000000"}  # the long form writes for minutes
            await admin.create_topic("load", partitions=6, configs=small)
        sent, ends_at = 0, time.monotonic() + LOAD_SECONDS
        async with Producer(cluster.bootstrap(), linger_ms=5) as producer:
            while time.monotonic() < ends_at:
                for _ in range(500):
                    await producer.ready()
                    producer.send_soon("load", b"x" * 1_000)
                    sent += 1
                await asyncio.sleep(0)
            await producer.flush()
        return sent

    settings = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "0"}
    with ClusterProcesses(tmp_path, {1: BOTH, 2: BOTH, 3: BOTH}, settings=settings) as cluster:
        cluster.start()
        before = cluster.elections()
        sent = asyncio.run(scenario(cluster))
        print(f"{sent} records in {LOAD_SECONDS:g} s, epoch {before} before and {cluster.elections()} after")
        assert cluster.elections() == before
