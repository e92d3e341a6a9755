"""A member by KIP-848: one request, the heartbeat, which carries all that either side has to tell.

The coordinator assigns; the member reports what it has, lets go of what is no longer its own, and is given the rest
once those who had it have let go. Nobody waits for everybody.
"""

import asyncio
from typing import Final
from uuid import UUID

from riverlog.client.consumer.commits import Identity
from riverlog.client.consumer.membership import GroupMembership, Interest, Partitions
from riverlog.client.errors import KafkaError, error_code, failure
from riverlog.client.network.coordinator import MOVED
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_JOINING, _LEAVING, _LEAVING_FOR_A_WHILE = 0, -1, -2

_NOT_KNOWN: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)
"""The member has to join again; the whole group is not known where it was deleted, or lost what was not durable."""


class ConsumerMember(GroupMembership):
    """The consumer protocol: the coordinator assigns."""

    _member_id = ""
    _epoch = _JOINING
    _interval = 0.0
    _assigned: tuple[tuple[TopicId, tuple[int, ...]], ...] = ()  # as the coordinator said last
    _reported: Partitions | None = None  # None: it has to be told everything
    _beat_at = float("-inf")

    @property
    def identity(self) -> Identity:
        return Identity(self._epoch, self._member_id, self._rules.instance_id)

    async def leave(self) -> None:
        """Leave; a static member's place is kept for its next start."""
        if self._epoch > 0:
            self._epoch = _LEAVING if self._rules.instance_id is None else _LEAVING_FOR_A_WHILE
            request = self._request()
            self._epoch, self._reported = _JOINING, None
            await self._coordinator.ask(request)

    async def _take_part(self) -> None:
        if not self._member_id:
            self._member_id = str(UUID(int=self._cluster.ports.random.getrandbits(128), version=4))
        while True:
            if self._overdue:
                await self._step_aside()
            await self._beat()
            self._offer_known()
            await self._until_due()

    async def _until_due(self) -> None:
        """Wait for the next beat, which comes early where there is something to tell."""
        loop = asyncio.get_running_loop()
        while (left := self._beat_at + self._interval - loop.time()) > 0:
            await self._pause(left)
            self._offer_known()
            if not self._applying and self.owned != self._reported:
                return

    def interest_changed(self, interest: Interest) -> None:
        self._reported = None
        super().interest_changed(interest)

    async def _beat(self) -> None:
        owned = self.owned
        request = self._request()
        try:
            response: ConsumerGroupHeartbeatResponse = await self._coordinator.ask(request)
        except KafkaError:
            self._reported = None
            raise
        self._beat_at = asyncio.get_running_loop().time()
        code = error_code(response.error_code)
        if code is ErrorCode.NONE:
            self._answered()
            self.assigned = True
            self._member_id = response.member_id or self._member_id
            self._epoch = response.member_epoch
            self._interval = response.heartbeat_interval_ms / 1000
            self._reported = owned
            if response.assignment is not None:
                self._assigned = tuple(
                    (TopicId(topic.topic_id), tuple(topic.partitions)) for topic in response.assignment.topic_partitions
                )
                await self._learn_topics()
            return
        self._reported = None
        if code in MOVED:
            self._coordinator.moved()
        if code in _NOT_KNOWN:
            self._epoch, self._assigned, self._interval = _JOINING, (), 0.0
            self.assigned = False
            self._lose()
            return
        raise failure(response.error_code, f"group {self._rules.group!r}", response.error_message)

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._rules.group, member_id=self._member_id, member_epoch=self._epoch
        )
        if self._epoch < 0:
            request.instance_id = self._rules.instance_id
            return request
        if self._reported is None:
            request.instance_id = self._rules.instance_id
            request.rebalance_timeout_ms = self._rules.max_poll_interval_ms
            request.server_assignor = self._rules.assignor
            request.subscribed_topic_names = sorted(self._interest.topics)
            request.subscribed_topic_regex = self._interest.pattern
        if self._reported != self.owned:
            request.topic_partitions = [] if self._epoch == _JOINING else self._own_partitions()
        return request

    def _own_partitions(self) -> list[TopicPartitions]:
        by_topic: dict[TopicId, list[int]] = {}
        for name, index in sorted(self.owned):
            topic = self._cluster.topics.get(name)
            if topic is not None:
                by_topic.setdefault(topic.topic_id, []).append(index)
        return [TopicPartitions(topic_id=topic, partitions=indexes) for topic, indexes in by_topic.items()]

    async def _learn_topics(self) -> None:
        """See that the names of all assigned topics are known."""
        known = self._cluster.topic_names
        if any(topic not in known for topic, _ in self._assigned):
            await self._cluster.refresh()

    def _offer_known(self) -> None:
        names = self._cluster.topic_names
        target = frozenset(
            TopicPartition(names[topic], index)
            for topic, indexes in self._assigned
            if topic in names
            for index in indexes
        )
        if not self._applying and not self.lost and self._epoch > 0:
            self._offer(target)
