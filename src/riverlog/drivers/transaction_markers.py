"""Sending the markers of ended transactions until every partition has its own.

What was decided is never taken back, so there is no last attempt: a partition that cannot be reached is asked again, at
growing intervals, for as long as this coordinator is the one to ask. A partition that is deleted needs no marker.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from riverlog.metadata.image import MetadataImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.limits import MARKER_ANSWER_SECONDS_MAX, MARKER_RETRY_SECONDS_MAX, MARKER_RETRY_SECONDS_MIN
from riverlog.model.transactions import MarkerPort, Producer, TransactionMarkers
from riverlog.observe.logging import get_logger
from riverlog.observe.stats import TransactionStats
from riverlog.transactions.commands import SendMarkers

_SETTLED: Final = frozenset((ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH))
"""A partition that knows a later epoch of the producer has had the marker: without it nobody is given that epoch."""


class MarkerSender:
    """Sends markers through the port; one task per transaction that is ending."""

    def __init__(
        self,
        port: MarkerPort,
        image: Callable[[], MetadataImage],
        stats: TransactionStats,
        *,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._port = port
        self._image = image
        self._stats = stats
        self._failed = failed
        self._under_way: dict[tuple[str, Producer], asyncio.Task[None]] = {}
        self._log = get_logger("riverlog.transactions")

    def send(self, wanted: SendMarkers, coordinator_epoch: int, written: Callable[[], None]) -> None:
        """Send the markers, and call `written` once all are there; those under way already are not sent twice."""
        name = (wanted.transactional_id, wanted.producer)
        if name in self._under_way:
            return
        task = asyncio.get_running_loop().create_task(self._send(wanted, coordinator_epoch))
        self._under_way[name] = task

        def ended(task: "asyncio.Task[None]") -> None:
            del self._under_way[name]
            if task.cancelled():
                return
            if (error := task.exception()) is not None:  # a mistake of our own: the world's are waited out
                self._failed(error)
            else:
                written()

        task.add_done_callback(ended)

    async def close(self) -> None:
        """Stop sending; whoever replays the coordinator's log begins again."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, wanted: SendMarkers, coordinator_epoch: int) -> None:
        self._stats.markers_waiting += len(wanted.partitions)
        try:
            await self._send_until_written(wanted, coordinator_epoch)
        finally:
            self._stats.markers_waiting -= len(wanted.partitions)

    async def _send_until_written(self, wanted: SendMarkers, coordinator_epoch: int) -> None:
        left = list(wanted.partitions)
        pause = MARKER_RETRY_SECONDS_MIN
        while left := await self._attempt(wanted, left, coordinator_epoch):
            self._stats.markers_retried += len(left)
            self._log.warning(
                "transaction markers not written", transactional_id=wanted.transactional_id, partitions=len(left)
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, MARKER_RETRY_SECONDS_MAX)

    async def _attempt(
        self, wanted: SendMarkers, partitions: list[TopicPartition], coordinator_epoch: int
    ) -> list[TopicPartition]:
        """Send once, and give the partitions that do not have their marker yet."""
        markers = TransactionMarkers(
            producer_id=wanted.producer.id,
            producer_epoch=wanted.producer.epoch,
            coordinator_epoch=coordinator_epoch,
            committed=wanted.committed,
            partitions=tuple(partitions),
            version=wanted.version,
        )
        try:
            async with asyncio.timeout(MARKER_ANSWER_SECONDS_MAX):
                codes = await self._port.write(markers)
        except OSError:  # also when it took too long
            return self._existing(partitions)
        return self._existing(each for each in partitions if codes.get(each) not in _SETTLED)

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [each for each in partitions if self._exists(each)]

    def _exists(self, partition: TopicPartition) -> bool:
        topic = self._image().topic(partition.topic)
        return topic is not None and partition.partition < topic.partition_count
