"""Groups in a simulated world: their members come and go, and what was committed stays committed.

The state of every coordinator is compared with the replay of its topic now and then, and in the end every group has
read everything.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Final

from riverlog import Admin
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.simulation.group_ledger import GroupLedger
from tests.simulation.machine import ADDRESS
from tests.simulation.members import GROUPS, Member, group_of
from tests.simulation.readers import Readers
from tests.simulation.scene import Scene, Topic

GROUP_ALONE: Final = "alone"
"""The group that never has a member."""
CATCH_UP_SECONDS_MAX: Final = 45.0


class Groups:
    """All groups of a run; there are none until the first member joins."""

    def __init__(self, scene: Scene, readers: Readers) -> None:
        self.ledger = GroupLedger(scene.ledger.blame, durable=scene.durable)
        self.present = False
        self._scene = scene
        self._readers = readers
        self._members: dict[int, Member] = {}
        self._lives_of_members = 0
        self._committed_alone: Counter[TopicPartition] = Counter()

    def join(self, number: int) -> None:
        """Start the member of this number, if there is none."""
        if not self.present:
            self.present = True
            small = {"segment.bytes": "8192", "min.cleanable.dirty.ratio": "0"}
            self._scene.spawn(self._scene.insist(lambda admin: admin.alter_configs(small, topic=OFFSETS_TOPIC)))
        if number in self._members:
            return
        self._lives_of_members += 1
        self._members[number] = Member(
            self._scene.machine,
            self.ledger,
            [topic.name for topic in self._scene.topics],
            number=number,
            random=Random(f"{self._scene.plan.seed} member {self._lives_of_members}"),
            show=self._show_to_member,
            say=self._scene.say,
        )

    def leave(self, number: int) -> None:
        """Make a member leave in good order, if there is one of this number."""
        if (member := self._members.pop(number, None)) is not None:
            self._scene.spawn(member.leave())

    def vanish(self, number: int) -> None:
        """Make a member end without a word, if there is one of this number."""
        if (member := self._members.pop(number, None)) is not None:
            self._scene.spawn(member.vanish())

    def _show_to_member(self, record: ConsumerRecord) -> None:
        topic = next(topic for topic in self._scene.topics if topic.name == record.topic)
        self._readers.show(topic, 1, record.partition, record.offset, record.key, record.value)

    async def commit_alone(self, topic: Topic, index: int) -> None:
        """Commit for the group without members, as administrators do."""
        async with topic.lock:
            if not topic.partitions:
                return
            partition = TopicPartition(topic.name, index % topic.partitions)
            self._committed_alone[partition] += 1
            offsets = {partition: self._committed_alone[partition]}

            async def commit(admin: Admin) -> None:
                asked_after = self.ledger.power_losses
                await admin.alter_group_offsets(GROUP_ALONE, offsets)
                self._scene.say(f"{GROUP_ALONE} committed {offsets}")
                self.ledger.acknowledged(GROUP_ALONE, offsets, asked_after=asked_after)

            await self._scene.insist(commit)

    async def audit(self) -> None:
        """Ask how far the groups have come: not less far than they were told."""
        for group in (*GROUPS, GROUP_ALONE):

            async def ask(admin: Admin, group: str = group) -> None:
                before = self.ledger.floors(group)
                committed = await admin.group_offsets(group)
                self.ledger.answered(group, before, {each: at.offset for each, at in committed.items()})

            await self._scene.insist(ask)

    def compare_with_replay(self) -> None:
        """The state of every coordinator whose decisions are all committed is what its topic says."""
        node = self._scene.machine.node
        for shard in () if node is None else list(node.parts.groups):
            if not shard.settled:
                continue
            with self._scene.machine.looking():
                try:
                    replayed = shard.replayed().state
                except (OSError, Refusal):
                    continue  # the disk is gone, and will tell
            self._scene.counts["replays"] += 1
            if replayed != shard.machine.state:
                self._scene.ledger.blame(f"{shard.name}: {shard.machine.state} is not what the topic says: {replayed}")

    async def catch_up(self) -> None:
        """See that every group comes to have read everything, by the members that it has, or a new one."""
        if not self.present:
            return
        if not self._scene.durable:  # members do not commit again what the coordinator has forgotten
            for member in self._members.values():
                await member.leave()
            self._members.clear()
        for number in range(len(GROUPS)):
            if not any(member.group == group_of(number) for member in self._members.values()):
                self.join(number)
        partitions = [
            TopicPartition(topic.name, index) for topic in self._scene.topics for index in range(topic.partitions)
        ]
        deadline = self._scene.loop.time() + CATCH_UP_SECONDS_MAX
        await self._scene.machine.serving()
        async with Admin(ADDRESS, ports=self._scene.machine.ports) as admin:
            while True:
                behind = [
                    f"{group} at {committed} of {end} in {partition}"
                    for group in GROUPS
                    for partition, committed, end in await self._lag(admin, group, partitions)
                ]
                if not behind:
                    break
                if self._scene.loop.time() > deadline:
                    self._scene.ledger.blame(f"groups do not come to an end: {behind}")
                    break
                await asyncio.sleep(0.2)
        self.compare_with_replay()
        for member in self._members.values():
            await member.leave()

    async def _lag(
        self, admin: Admin, group: str, partitions: list[TopicPartition]
    ) -> list[tuple[TopicPartition, int, int]]:
        """Return the partitions in which there is something left to read, with what is committed and the end."""
        starts = await admin.list_offsets(dict.fromkeys(partitions, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"))
        committed = {each: at.offset for each, at in (await admin.group_offsets(group)).items()}
        return [
            (each, committed.get(each, 0), ends[each].offset)
            for each in partitions
            if max(committed.get(each, 0), starts[each].offset) < ends[each].offset
        ]

    async def judge(self, partition: TopicPartition, admin: Admin, held: list[int]) -> None:
        """See that no group passed over records of a partition that holds these offsets."""
        ledger = self._scene.ledger.partition(partition.topic, 1, partition.partition)
        if not self.present or ledger.may_expire:
            return
        for group in GROUPS:
            committed = (await admin.group_offsets(group)).get(partition)
            if committed is not None:
                kept = [offset for offset in held if offset >= ledger.given_up]
                self.ledger.judge(group, partition, committed.offset, kept)
