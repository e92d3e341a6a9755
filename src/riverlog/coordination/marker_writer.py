"""Writing markers: what coordinators decided is written to the partitions that this node leads.

A marker in `__consumer_offsets` also decides about offsets that a group committed in the transaction. So it is a fact
for the machine of that partition, which writes it in its turn.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from riverlog.coordination.futures import answered, concluded
from riverlog.coordination.groups import GroupCoordinator
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.model.ports import Clock
from riverlog.model.transactions import ProducerIdentity, TransactionMarkers
from riverlog.partitions.replicas import Replicas
from riverlog.records.control import Marker

_AWAY: Final = frozenset(
    (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
)


class MarkerWriter:
    """Writes markers to the partitions of this node."""

    def __init__(self, replicas: Replicas, groups: GroupCoordinator, clock: Clock) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    def write(self, markers: TransactionMarkers) -> "asyncio.Future[Mapping[TopicPartition, ErrorCode]]":
        """Write a marker to each partition; the future tells how it went once all are committed, mostly at once."""
        under_way = self.begin(markers)
        if not all(each.done() for each in under_way.values()):
            return asyncio.ensure_future(_all(under_way))
        return answered({name: each.result() for name, each in under_way.items()})

    def begin(self, markers: TransactionMarkers) -> "Mapping[TopicPartition, asyncio.Future[ErrorCode]]":
        """Append a marker to each partition now; each future ends once its marker is committed, or never will be."""
        return {name: self._begin(name, markers) for name in markers.partitions}

    def _begin(self, name: TopicPartition, markers: TransactionMarkers) -> "asyncio.Future[ErrorCode]":
        """Append one marker, now unless its log is being recovered; the future ends once it is committed, or says why
        it is not."""
        producer = ProducerIdentity(markers.producer_id, markers.producer_epoch)
        marker = Marker(markers.committed, markers.coordinator_epoch)
        try:
            if self._replicas.is_recovering(name):
                return asyncio.ensure_future(self._begin_later(name, markers))
            partition = self._replicas.get(name.topic, name.partition)
            if partition is None:
                return answered(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if name.topic == OFFSETS_TOPIC and partition.check_marker(producer, marker, markers.version):
                return self._end_commits(name, producer, marker)
            offset = partition.append_marker(producer, marker, markers.version, now_ms=self._clock.wall_ms())
        except Refusal as refusal:
            return answered(refusal.code)
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def settle(code: ErrorCode) -> None:
            if not done.done():  # done already if nobody waits any more
                done.set_result(code)

        partition.when_committed(offset, settle, seconds_max=None)  # whoever asked loses patience earlier
        return done

    async def _begin_later(self, name: TopicPartition, markers: TransactionMarkers) -> ErrorCode:
        """Append a marker as soon as there is a log: who asks for it at growing intervals comes late."""
        await self._replicas.wait_recovered(name)
        return await self._begin(name, markers)

    def _end_commits(
        self, name: TopicPartition, producer: ProducerIdentity, marker: Marker
    ) -> "asyncio.Future[ErrorCode]":
        """Write the marker to a partition of group offsets, now, and apply it to its groups."""
        from riverlog.groups.commands import TransactionEnded  # a node without groups starts without it

        command = TransactionEnded(producer, marker.committed, marker.coordinator_epoch)
        ended = self._groups.submit_to(name.partition, command)
        return answered(_code(ended)) if ended.done() else asyncio.ensure_future(concluded(ended, _code))


def in_words_of_leaders(code: ErrorCode) -> ErrorCode:
    """Return the code for senders of markers, who look for leaders, and know no coordinator that is away."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _AWAY else code


async def _all(
    under_way: "Mapping[TopicPartition, asyncio.Future[ErrorCode]]",
) -> Mapping[TopicPartition, ErrorCode]:
    return {name: await each for name, each in under_way.items()}


def _code(ended: "asyncio.Future[None]") -> ErrorCode:
    try:
        ended.result()
    except Refusal as refusal:
        return in_words_of_leaders(refusal.code)
    return ErrorCode.NONE
