"""Members of groups in a simulated world: they read, take their time, commit what they dealt with, and may vanish."""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

from riverlog import Consumer
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import KafkaError
from riverlog.model.ids import TopicPartition
from tests.simulation.group_ledger import GroupLedger
from tests.simulation.machine import ADDRESS, Machine
from tests.support.members import cut

GROUPS: Final[dict[str, dict[str, Any]]] = {
    "cooperative": {"group_protocol": "classic", "assignor": "cooperative-sticky"},
    "eager": {"group_protocol": "classic", "assignor": "range"},
    "newer": {"group_protocol": "consumer"},
}
_STATIC_FROM: Final = 6
"""Members with this number and above keep their place over a restart."""
_THINK_SECONDS: Final = (0.0, 0.0, 0.05, 0.5, 6.0)


def group_of(number: int) -> str:
    """Return the group that a member belongs to."""
    return list(GROUPS)[number % len(GROUPS)]


class Member:
    """One member, from its start until it has left or vanished; it lives through all that happens to the node."""

    def __init__(
        self,
        machine: Machine,
        ledger: GroupLedger,
        topics: Iterable[str],
        *,
        number: int,
        random: Random,
        show: Callable[[ConsumerRecord], None],
        say: Callable[[str], None],
    ) -> None:
        self.group = group_of(number)
        self._name = f"member {number} of {self.group}"
        self._machine = machine
        self._ledger = ledger
        self._topics = sorted(topics)
        self._instance = f"static-{number}" if number >= _STATIC_FROM else None
        self._random = random
        self._show = show
        self._say = say
        self._stopping = False
        self._dealt_with: dict[TopicPartition, int] = {}  # and not committed yet
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def leave(self) -> None:
        """Be done with what is in hand, and leave in good order."""
        self._stopping = True
        await self._task

    async def vanish(self) -> None:
        """End at once, without a word to anybody."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _live(self) -> None:
        consumer = await self._start()
        try:
            consumer.subscribe(self._topics, on_assigned=self._assigned, on_revoked=self._revoked)
            while not self._stopping:
                await self._read_on(consumer)
        except asyncio.CancelledError:
            await cut(consumer)
            raise
        await consumer.close()

    async def _start(self) -> Consumer:
        while True:
            await self._machine.serving()
            consumer = Consumer(
                ADDRESS,
                group=self.group,
                group_instance_id=self._instance,
                auto_offset_reset="earliest",
                auto_commit=False,
                heartbeat_interval_ms=300,
                session_timeout_ms=3_000,
                max_poll_interval_ms=5_000,
                metadata_age_max_ms=2_000,
                request_timeout_ms=1_500,
                ports=self._machine.ports,
                **GROUPS[self.group],
            )
            try:
                return await consumer.start()
            except KafkaError as error:
                self._say(f"{self._name} cannot start: {error.code.name}")
                await asyncio.sleep(0.05)

    async def _read_on(self, consumer: Consumer) -> None:
        try:
            records = await consumer.poll(timeout_ms=300, max_records=self._random.randrange(1, 30))
            for record in records:
                self._show(record)
                partition = TopicPartition(record.topic, record.partition)
                self._ledger.given(self.group, partition, record.offset)
                self._dealt_with[partition] = record.offset + 1
            if not self._dealt_with:
                return
            await asyncio.sleep(self._random.random() * self._random.choice(_THINK_SECONDS))
            asked_after = self._ledger.power_losses
            await consumer.commit(self._dealt_with)
        except KafkaError as error:
            self._say(f"{self._name}: {error.code.name}")
            await asyncio.sleep(0.05)
        else:
            self._say(f"{self._name} committed {sorted(self._dealt_with.items())}")
            self._ledger.acknowledged(self.group, self._dealt_with, asked_after=asked_after)
            self._dealt_with.clear()

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        self._say(f"{self._name} + {sorted(partitions)}")

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        self._say(f"{self._name} - {sorted(partitions)}")
        for partition in partitions:
            self._dealt_with.pop(partition, None)
