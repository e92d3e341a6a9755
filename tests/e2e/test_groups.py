"""Groups of real processes: members killed, members that come later, members restarted one by one; a node that dies."""

import asyncio
import os
import random
from pathlib import Path
from typing import Final

import pytest

from riverlog import Admin
from riverlog.groups.batches import decode_facts
from riverlog.groups.state import GroupsState
from riverlog.model.ids import TopicPartition
from riverlog.records.record import read_batches
from tests.e2e.clients import create_topic
from tests.e2e.crew import PARTITIONS, TOPIC, Crew, Load
from tests.support.node import Node
from tests.support.waiting import until

SETTINGS: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.heartbeat.interval.ms": "200",
    "metrics.port": "0",
}
CLIENTS: Final = ["confluent", "riverlog"]
KILLS: Final = 4


@pytest.mark.parametrize("client", CLIENTS)
def test_only_what_moves_is_revoked_and_what_a_killed_member_had_is_read_by_others(tmp_path: Path, client: str) -> None:
    with Node(tmp_path, settings=SETTINGS) as node:
        create_topic(node.bootstrap, TOPIC, partitions=PARTITIONS)
        with Load(node.bootstrap) as load, Crew(tmp_path, node.bootstrap, client=client, protocol="classic") as crew:
            stayers = [crew.start(), crew.start()]
            crew.until_shared(*stayers)
            revoked_before = [len(member.told("revoked")) for member in stayers]
            third = crew.start()
            crew.until_shared(*stayers, third)
            moved = [member.told("revoked")[before:] for member, before in zip(stayers, revoked_before, strict=True)]
            assert sorted(moved[0] + moved[1]) == third.partitions
            third.kill()
            crew.until_shared(*stayers)
            crew.until_read(load.stop())
            assert not any(member.told("lost") for member in stayers)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_group_whose_members_are_restarted_one_by_one_reads_every_record(tmp_path: Path, client: str) -> None:
    with Node(tmp_path, settings=SETTINGS) as node:
        create_topic(node.bootstrap, TOPIC, partitions=PARTITIONS)
        with Load(node.bootstrap) as load, Crew(tmp_path, node.bootstrap, client=client, protocol="consumer") as crew:
            members = [crew.start() for _ in range(3)]
            crew.until_shared(*members)
            for position in range(3):
                members[position].stop()
                members[position] = crew.start()
                crew.until_shared(*members)
            crew.until_read(load.stop())


def test_what_groups_have_committed_survives_kills_of_the_node(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("KILLS_SEED", "5"))
    with Node(tmp_path, settings=SETTINGS) as node:
        create_topic(node.bootstrap, TOPIC, partitions=PARTITIONS)
        with (
            Load(node.bootstrap) as load,
            Crew(tmp_path, node.bootstrap, client="confluent", protocol="classic", group="older") as older,
            Crew(tmp_path, node.bootstrap, client="riverlog", protocol="consumer", group="newer") as newer,
        ):
            crews = (older, newer)
            for crew in crews:
                crew.start()
            for number in range(KILLS):
                if number < 2:
                    crews[number].start()  # so that the node dies in the middle of a rebalance, too
                until_commits(crews, chance.randrange(1, 8))
                node.kill()
                promised = {crew: crew.committed() for crew in crews}
                node.start()
                for crew in crews:
                    committed = offsets_of(node, crew.group)
                    assert {index: at for index, at in promised[crew].items() if committed.get(index, -1) < at} == {}
            ends = load.stop()
            for crew in crews:
                crew.until_read(ends)
                for member in crew.members:
                    member.stop()
                assert offsets_of(node, crew.group) == replayed(node, crew.group) == ends


def until_commits(crews: tuple[Crew, ...], count: int) -> None:
    """Wait until each crew has so many commits more."""
    before = [len([*each_commit(crew)]) for crew in crews]

    def enough() -> bool:
        return all(len([*each_commit(crew)]) >= known + count for crew, known in zip(crews, before, strict=True))

    until(enough, lambda: f"nobody commits: {[member.events()[-3:] for crew in crews for member in crew.members]}")


def each_commit(crew: Crew) -> list[object]:
    return [what for member in crew.members for what, _ in member.events() if what == "committed"]


def offsets_of(node: Node, group: str) -> dict[int, int]:
    """Ask what the group has committed."""

    async def ask() -> dict[TopicPartition, int]:
        async with Admin(node.bootstrap) as admin:
            return {partition: at.offset for partition, at in (await admin.group_offsets(group)).items()}

    return {partition.partition: offset for partition, offset in asyncio.run(ask()).items()}


def replayed(node: Node, group: str) -> dict[int, int]:
    """Read from the files what the group has committed."""
    state = GroupsState()
    for path in sorted(node.data.glob("__consumer_offsets-*/*.log")):
        for header, records in read_batches(path.read_bytes()):
            for fact in decode_facts(header, records):
                state.apply(fact)
    return {partition.partition: value.offset for partition, value in state.offsets.of(group).items()}
