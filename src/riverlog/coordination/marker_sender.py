"""Sending the markers of ended transactions until every partition has its own.

What was decided is never taken back, so there is no last attempt: a partition that cannot be reached is asked again, at
growing intervals, for as long as this coordinator is the one to ask. A partition that is deleted needs no marker. Where
a partition has heard from a later coordinator, that one sends them.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from riverlog.coordination.futures import refused
from riverlog.coordination.limits import MARKER_ANSWER_SECONDS_MAX, MARKER_RETRY_SECONDS_MAX, MARKER_RETRY_SECONDS_MIN
from riverlog.metadata.image import MetadataImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.transactions import MarkerPort, ProducerIdentity, TransactionMarkers
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.observe.stats import TransactionStats
from riverlog.transactions.commands import SendMarkers

_SETTLED: Final = frozenset((ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH))
"""A partition that knows a later epoch of the producer has had the marker: without it nobody is given that epoch."""

_Codes = Mapping[TopicPartition, ErrorCode]


class _Fenced(Exception):
    """A partition has heard from a later coordinator of the same transactional id."""


class MarkerSender:
    """Sends markers through the port: at once where they are written at once, else in a task per transaction."""

    def __init__(
        self,
        port: MarkerPort,
        image: Callable[[], MetadataImage],
        stats: TransactionStats,
    ) -> None:
        self._port = port
        self._image = image
        self._stats = stats
        self._under_way: dict[tuple[str, ProducerIdentity], asyncio.Handle | asyncio.Task[bool]] = {}
        self._log = get_logger("riverlog.transactions")

    def send(self, wanted: SendMarkers, coordinator_epoch: int, written: Callable[[], None]) -> None:
        """Send the markers, and call `written` once all are there; those under way already are not sent twice.

        They are sent a moment later, so that the answer to whoever decided does not wait for them.
        """
        name = (wanted.transactional_id, wanted.producer)
        if name not in self._under_way:
            begin = asyncio.get_running_loop().call_soon
            self._under_way[name] = begin(self._begin, name, wanted, coordinator_epoch, written)

    def stop(self) -> "list[asyncio.Task[bool]]":
        """Stop sending; whoever replays the coordinator's log begins again. Return the tasks that are ending."""
        under_way = list(self._under_way.values())
        self._under_way.clear()
        for each in under_way:
            each.cancel()
        return [each for each in under_way if isinstance(each, asyncio.Task)]

    async def close(self) -> None:
        """Stop sending, and wait until nothing is under way."""
        await asyncio.gather(*self.stop(), return_exceptions=True)

    def _begin(
        self,
        name: tuple[str, ProducerIdentity],
        wanted: SendMarkers,
        coordinator_epoch: int,
        written: Callable[[], None],
    ) -> None:
        """Send them, and wait for the answer if it is not here."""
        answer = self._ask(wanted, wanted.partitions, coordinator_epoch)
        if answer.done() and answer.exception() is None and not self._missing(wanted.partitions, answer.result()):
            del self._under_way[name]
            written()
            return
        task = asyncio.get_running_loop().create_task(self._send(wanted, coordinator_epoch, answer))
        self._under_way[name] = task

        def ended(task: "asyncio.Task[bool]") -> None:
            self._under_way.pop(name, None)
            if not task.cancelled() and task.result():
                written()

        task.add_done_callback(ended)

    async def _send(self, wanted: SendMarkers, coordinator_epoch: int, answer: "asyncio.Future[_Codes]") -> bool:
        """Send them until all are written, or until another coordinator is known to send them."""
        self._stats.markers_waiting += len(wanted.partitions)
        try:
            await self._send_until_written(wanted, coordinator_epoch, answer)
            return True
        except _Fenced:
            self._log.error(
                "transaction markers given up: a later coordinator has written some",
                transactional_id=wanted.transactional_id,
                coordinator_epoch=coordinator_epoch,
            )
            return False
        finally:
            self._stats.markers_waiting -= len(wanted.partitions)

    async def _send_until_written(
        self, wanted: SendMarkers, coordinator_epoch: int, answer: "asyncio.Future[_Codes]"
    ) -> None:
        pause = MARKER_RETRY_SECONDS_MIN
        left = await self._heard(wanted.partitions, answer)
        while left:
            self._stats.markers_retried += len(left)
            self._log.warning(
                "transaction markers not written", transactional_id=wanted.transactional_id, partitions=len(left)
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, MARKER_RETRY_SECONDS_MAX)
            left = await self._heard(left, self._ask(wanted, left, coordinator_epoch))

    def _ask(
        self, wanted: SendMarkers, partitions: tuple[TopicPartition, ...], coordinator_epoch: int
    ) -> "asyncio.Future[_Codes]":
        markers = TransactionMarkers(
            producer_id=wanted.producer.id,
            producer_epoch=wanted.producer.epoch,
            coordinator_epoch=coordinator_epoch,
            committed=wanted.committed,
            partitions=partitions,
            version=wanted.version,
        )
        try:
            return asyncio.ensure_future(self._port.write(markers))
        except Exception as mistake:
            return refused(mistake)

    async def _heard(
        self, partitions: tuple[TopicPartition, ...], answer: "asyncio.Future[_Codes]"
    ) -> tuple[TopicPartition, ...]:
        """Return the partitions that do not have their marker yet."""
        try:
            async with asyncio.timeout(MARKER_ANSWER_SECONDS_MAX):
                codes = await answer
        except OSError:  # also when it took too long
            codes = {}
        except Exception as mistake:  # of our own; what was decided has to be written all the same
            contained("markers of a transaction", mistake)
            codes = {}
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
            raise _Fenced
        return self._missing(partitions, codes)

    def _missing(self, partitions: tuple[TopicPartition, ...], codes: _Codes) -> tuple[TopicPartition, ...]:
        return tuple(each for each in partitions if codes.get(each) not in _SETTLED and self._exists(each))

    def _exists(self, partition: TopicPartition) -> bool:
        topic = self._image().topic(partition.topic)
        return topic is not None and partition.partition < topic.partition_count
