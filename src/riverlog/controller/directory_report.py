"""A broker's report of replicas that lie in another of its log directories than the metadata name (KIP-858).

They are found so when the node starts: somebody has moved a folder, or a disk has come back. The report is sent until
each replica is noted, or is none of this broker's any more.
"""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final
from uuid import UUID

from riverlog.controller.channel import ControllerChannel
from riverlog.controller.peers import Lane
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.observe.logging import get_logger
from riverlog.wire.messages.assign_replicas_to_dirs import (
    AssignedDirectory,
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

_FIRST_PAUSE_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 10.0
_REPLICAS_PER_REQUEST_MAX: Final = 2_000
_SETTLED: Final = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""It is noted, or there is nothing to note any more: the topic is gone, or the replica."""

Places = dict[tuple[UUID, int], UUID]
"""The log directories in which replicas lie, by topic id and partition."""


class DirectoryReport:
    """Reports where replicas lie."""

    def __init__(
        self, node_id: NodeId, epoch: int, channel: ControllerChannel, found: Mapping[tuple[UUID, int], UUID]
    ) -> None:
        """Build the report of a broker that has registered with this epoch."""
        self._node_id = node_id
        self._epoch = epoch
        self._channel = channel
        self._left: Places = dict(found)
        self._log = get_logger("riverlog.broker")

    async def run(self) -> None:
        """Report all of them, and again those that could not be noted."""
        pause = _FIRST_PAUSE_SECONDS
        while self._left:
            portion = dict(islice(self._left.items(), _REPLICAS_PER_REQUEST_MAX))
            code = await self._send(portion)
            if code is ErrorCode.STALE_BROKER_EPOCH:
                return  # another process is this broker now, and reports what it finds
            if code is ErrorCode.NONE:
                pause = _FIRST_PAUSE_SECONDS
                continue
            self._log.warning("log directories not reported", replicas=len(self._left), error=code.title)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    async def _send(self, portion: Places) -> ErrorCode:
        """Send a portion and forget what is settled; return why something is not, if so."""
        request = AssignReplicasToDirsRequest(self._node_id, self._epoch, _by_directory(portion))
        try:
            response: AssignReplicasToDirsResponse = await self._channel.ask(request, Lane.CONTROL, repeatable=True)
        except Refusal as refusal:
            return refusal.code
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        for directory in response.directories:
            for topic in directory.topics:
                for each in topic.partitions:
                    if each.error_code in _SETTLED:
                        self._left.pop((topic.topic_id, each.partition_index), None)
                        portion.pop((topic.topic_id, each.partition_index), None)
        if not portion:
            return ErrorCode.NONE
        codes = (
            each.error_code for directory in response.directories for t in directory.topics for each in t.partitions
        )
        return next((ErrorCode(code) for code in codes if code not in _SETTLED), ErrorCode.UNKNOWN_SERVER_ERROR)


def _by_directory(places: Places) -> list[AssignedDirectory]:
    directories: dict[UUID, dict[UUID, list[int]]] = {}
    for (topic_id, partition), directory in places.items():
        directories.setdefault(directory, {}).setdefault(topic_id, []).append(partition)
    return [AssignedDirectory(directory, list(_topics(topics))) for directory, topics in directories.items()]


def _topics(topics: Mapping[UUID, Iterable[int]]) -> Iterable[AssignedTopic]:
    for topic_id, partitions in topics.items():
        yield AssignedTopic(topic_id, [AssignedPartition(each) for each in partitions])
