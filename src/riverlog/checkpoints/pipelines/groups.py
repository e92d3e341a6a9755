"""The groups that stand for queries: their offsets are those behind the last committed batch."""

import asyncio
from typing import Final

from riverlog.checkpoints.pipelines.spark_logs import SourceOffset
from riverlog.client.admin.admin import Admin
from riverlog.client.errors import KafkaError
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition

KNOWN_SECONDS_MAX: Final = 1.0
"""How long a topic is known without asking: each batch of a query asks for the same ones."""


class Groups:
    """Knows which offsets are of topics here, and commits them."""

    def __init__(self, bootstrap: str, *, ports: Ports | None = None, security: Security | None = None) -> None:
        self._admin = Admin(bootstrap, client_id="riverlog-checkpoints", ports=ports, security=security)
        self._starting = asyncio.Lock()
        self._started = False
        self._counts: dict[str, int] = {}
        """The partitions of topics that were found lately."""
        self._counted_at = 0.0

    async def close(self) -> None:
        if self._started:
            await self._admin.close()

    async def cluster_id(self) -> str:
        """Name the cluster."""
        await self._start()
        return (await self._admin.describe_cluster()).cluster_id

    async def known(self, offsets: tuple[SourceOffset, ...]) -> tuple[SourceOffset, ...]:
        """Leave out what is of no topic of this cluster: a query may read from others."""
        if not offsets:
            return ()
        await self._start()
        now = asyncio.get_running_loop().time()
        if now - self._counted_at > KNOWN_SECONDS_MAX:
            self._counts, self._counted_at = {}, now
        counts = self._counts  # another call may begin a new one while this one waits
        for topic, index, _ in offsets:
            count = counts.get(topic)
            if count is None or 0 < count <= index:  # one that has grown may have it by now
                counts[topic] = await self._partitions(topic)
        return tuple(each for each in offsets if each[1] < counts[each[0]])

    async def commit(self, group: str, offsets: tuple[SourceOffset, ...]) -> None:
        """Commit these offsets for the group; KafkaError where it has members of its own."""
        if known := await self.known(offsets):
            await self._admin.alter_group_offsets(
                group, {TopicPartition(topic, index): offset for topic, index, offset in known}
            )

    async def ends(self, offsets: tuple[SourceOffset, ...]) -> dict[tuple[str, int], int]:
        """Return the end offsets of those partitions that are of this cluster."""
        known = {TopicPartition(topic, index) for topic, index, _ in await self.known(offsets)}
        found = await self._admin.list_offsets(dict.fromkeys(known, "latest")) if known else {}
        return {(at.topic, at.partition): end.offset for at, end in found.items()}

    async def _partitions(self, topic: str) -> int:
        try:
            return len((await self._admin.describe_topics(topic))[0].partitions)
        except KafkaError as problem:
            if problem.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                return 0
            raise

    async def _start(self) -> None:
        async with self._starting:
            if not self._started:
                await self._admin.start()
                self._started = True
