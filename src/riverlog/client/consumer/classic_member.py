"""A member by the classic protocol: join, let the leader assign, sync, beat; and again whenever the group changes.

    joining -> syncing -> staying ---- a rebalance, a change of topics, a partition let go ----> joining
                             |------- a beat that the group does not know ----------> lost, joining anew

With `range` everything is let go before each join. With `cooperative-sticky` the reader goes on with what it has, and
only what moves is let go, after which the member joins once more so that its new owner can be found.
"""

import asyncio
from typing import Final

from riverlog.client.consumer.assignors import (
    COOPERATIVE_STICKY,
    GroupMember,
    as_shares,
    from_shares,
    share_out,
)
from riverlog.client.consumer.commits import Identity
from riverlog.client.consumer.membership import NOTHING, GroupMembership, Partitions
from riverlog.client.errors import KafkaError, error_code, failure
from riverlog.client.network.coordinator import JOIN_LANE, MOVED
from riverlog.client.reasons import reason
from riverlog.model.errors import ErrorCode
from riverlog.wire.consumer_protocol import PROTOCOL_TYPE, Assignment, Subscription, decode_told, encode_told
from riverlog.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

_JOIN_SECONDS_MORE: Final = 5.0
"""Beyond the time that the other members have for coming back."""

_FIRST_BEAT_SECONDS: Final = 0.1
"""The first beat after joining comes so soon, each later one after twice the time, up to the usual interval: where one
member comes others often do, and the sooner all know, the sooner they have their partitions."""

_AGAIN: Final = MOVED | {ErrorCode.REBALANCE_IN_PROGRESS}
_NOT_KNOWN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ClassicMember(GroupMembership):
    """The classic protocol, with an assignor of the client's own."""

    _member_id = ""
    _generation = -1
    _subscribed: frozenset[str] = frozenset()
    _has_missed = False  # the answer to the last beat
    _counts: dict[str, int] | None = None  # what the leader has shared out

    @property
    def identity(self) -> Identity:
        return Identity(self._generation, self._member_id, self._rules.instance_id)

    async def leave(self) -> None:
        """Leave, unless the member is a static one: its place is kept for its next start."""
        if self._member_id and self._rules.instance_id is None:
            member = MemberIdentity(member_id=self._member_id, reason="the consumer was closed")
            request = LeaveGroupRequest(group_id=self._rules.group, members=[member], member_id=self._member_id)
            self._member_id, self._generation = "", -1
            await self._coordinator.ask(request)

    async def _take_part(self) -> None:
        self.assigned = False
        await self._let_go_first()
        joined = await self._join()
        if joined is not None and (assigned := await self._sync(joined)) is not None:
            self.assigned = True
            self._offer(assigned)
            await self._stay()

    # Joining ----------------------------------------------------------------------------------------------

    async def _let_go_first(self) -> None:
        """Wait until the reader has finished what it is at, and without cooperation has given up everything."""
        await self._until(lambda: not self._applying)
        if self._rules.assignor == COOPERATIVE_STICKY:
            self.target = None
        elif self.owned:
            self._offer(NOTHING)
            await self._until(lambda: not self.owned)

    async def _join(self) -> JoinGroupResponse | None:
        if self._interest.pattern is not None:
            await self._cluster.refresh()
        self._subscribed = self._interest.among(self._cluster)
        subscription = Subscription(
            topics=tuple(sorted(self._subscribed)),
            owned_partitions=as_shares(self.owned),
            generation_id=self._generation,
        )
        assert self._rules.assignor is not None
        request = JoinGroupRequest(
            group_id=self._rules.group,
            session_timeout_ms=self._rules.session_timeout_ms,
            rebalance_timeout_ms=self._rules.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=self._rules.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=self._rules.assignor, metadata=encode_told(subscription))],
        )
        seconds = self._rules.max_poll_interval_ms / 1000 + _JOIN_SECONDS_MORE
        response: JoinGroupResponse = await self._coordinator.ask(request, lane=JOIN_LANE, seconds=seconds)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            return None
        if not self._accepted(response.error_code, "joining"):
            return None
        self._member_id, self._generation = response.member_id, response.generation_id
        return response

    async def _sync(self, joined: JoinGroupResponse) -> Partitions | None:
        assignments: list[SyncGroupRequestAssignment] = []
        self._counts = None
        if joined.leader == self._member_id:
            self._counts = await self._count_partitions(joined)
            if not joined.skip_assignment:
                assignments = self._share_out(joined, self._counts)
        request = SyncGroupRequest(
            group_id=self._rules.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._rules.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        seconds = self._rules.max_poll_interval_ms / 1000 + _JOIN_SECONDS_MORE
        response: SyncGroupResponse = await self._coordinator.ask(request, lane=JOIN_LANE, seconds=seconds)
        if not self._accepted(response.error_code, "being assigned partitions"):
            return None
        if not response.assignment:
            return NOTHING
        return frozenset(from_shares(decode_told(Assignment, response.assignment).assigned_partitions))

    async def _count_partitions(self, joined: JoinGroupResponse) -> dict[str, int]:
        """Count the partitions of all topics that some member reads; one that is missing has none yet."""
        wanted = {topic for member in joined.members for topic in decode_told(Subscription, member.metadata).topics}
        self._cluster.watch(wanted)
        await self._cluster.refresh()
        return self._counts_of(wanted)

    def _counts_of(self, topics: set[str]) -> dict[str, int]:
        known = self._cluster.topics
        return {topic: len(known[topic].partitions) for topic in topics if topic in known}

    def _share_out(self, joined: JoinGroupResponse, counts: dict[str, int]) -> list[SyncGroupRequestAssignment]:
        members = [
            GroupMember(member.member_id, decode_told(Subscription, member.metadata), member.group_instance_id)
            for member in joined.members
        ]
        shares = share_out(joined.protocol_name or "", members, counts)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_told(Assignment(assigned_partitions=as_shares(share)))
            )
            for member_id, share in shares.items()
        ]

    def _accepted(self, number: int, what: str) -> bool:
        """Return whether to go on; where not, the state is such that joining again is the right thing."""
        code = error_code(number)
        if code in MOVED:
            self._coordinator.moved()
            raise failure(number, f"{what} in group {self._rules.group!r}")
        self._answered()
        if code is ErrorCode.NONE:
            return True
        if code in _AGAIN:
            return False
        if code in _NOT_KNOWN:
            self._forget_place(keep_id=code is ErrorCode.ILLEGAL_GENERATION)
            return False
        self._forget_place(keep_id=False)
        raise KafkaError(code, _refused(code, self._rules.group, self._rules.assignor or ""))

    def _forget_place(self, *, keep_id: bool) -> None:
        self._generation = -1
        if not keep_id:
            self._member_id = ""
        self._lose()

    # Staying ----------------------------------------------------------------------------------------------

    async def _stay(self) -> None:
        """Beat until it is time to join again."""
        usual_seconds = self._rules.heartbeat_interval_ms / 1000
        beat_seconds = min(_FIRST_BEAT_SECONDS, usual_seconds)
        loop = asyncio.get_running_loop()
        next_beat = loop.time() + beat_seconds
        had = self.owned
        while True:
            await self._pause(max(0.0, next_beat - loop.time()))
            if self._rules.assignor == COOPERATIVE_STICKY and not self._applying and had - self.owned:
                return  # what was let go can be given to others now
            had = self.owned
            if self._topics_changed():
                return
            if self._overdue:
                await self._step_aside()
                return
            if loop.time() >= next_beat:
                if not await self._beat():
                    return
                beat_seconds = min(2 * beat_seconds, usual_seconds)
                next_beat = loop.time() + beat_seconds

    def _topics_changed(self) -> bool:
        if self._interest.among(self._cluster) != self._subscribed:
            return True
        return self._counts is not None and self._counts_of(set(self._counts) | self._subscribed) != self._counts

    async def _beat(self) -> bool:
        """Report to the coordinator that the member lives; False where it must join again."""
        request = HeartbeatRequest(
            group_id=self._rules.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._rules.instance_id,
        )
        try:
            response: HeartbeatResponse = await self._coordinator.ask(request)
        except KafkaError as problem:
            if not problem.retriable:
                raise
            self._missed(problem)
            return True  # the session lasts longer than one beat
        code = error_code(response.error_code)
        if code in MOVED:
            self._coordinator.moved()
            self._missed(failure(code, f"a heartbeat in group {self._rules.group!r}"))
            return True
        self._has_missed = False
        return self._accepted(code, "a heartbeat")

    def _missed(self, problem: KafkaError) -> None:
        """Count the second missing answer in a row as silence: a coordinator that moves answers the next beat."""
        if self._has_missed:
            self._asked_in_vain(problem)
        self._has_missed = True


def _refused(code: ErrorCode, group: str, assignor: str) -> str:
    match code:
        case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return (
                f"group {group!r} shares its partitions in another way than {assignor!r}: "
                'choose its way, for example assignor="range", or another group'
            )
        case ErrorCode.FENCED_INSTANCE_ID:
            return f"another consumer with the same group_instance_id has taken this one's place in group {group!r}"
        case _:
            return f"group {group!r}: {reason(code)}"
