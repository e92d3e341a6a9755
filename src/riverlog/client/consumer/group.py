"""A consumer's dealings with its group, on the reader's side: taking over, letting go, committing.

Everything here happens when the reader asks for records, so that it has dealt with those it was given before: what
`commit` writes down is where the reader stands. Of partitions that go to others the offsets are committed first.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from riverlog.client.consumer.classic_member import ClassicMember
from riverlog.client.consumer.commits import (
    OUTSIDE,
    CommittedOffset,
    GroupMetadata,
    Identity,
    commit_offsets,
    committed_offsets,
)
from riverlog.client.consumer.consumer_member import ConsumerMember
from riverlog.client.consumer.membership import NOTHING, GroupMembership, GroupRules, Interest, Partitions
from riverlog.client.errors import CommitFailed, KafkaError
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import GroupCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition

GroupProtocol = Literal["classic", "consumer"]
Listener = Callable[[list[TopicPartition]], Awaitable[None] | None]
"""Told of partitions that come or go; a plain function or an async one."""

_MEMBERS: Final[dict[str, type[GroupMembership]]] = {"classic": ClassicMember, "consumer": ConsumerMember}
_LEAVE_SECONDS_MAX: Final = 5.0


class Reader(Protocol):
    """What a group needs of the consumer that reads for it."""

    def held(self) -> dict[TopicPartition, Offset | None]:
        """Return the partitions that are read and where the reader stands in each, if that is known."""
        ...

    def hold(self, partitions: Mapping[TopicPartition, Offset | None]) -> None:
        """Read these and no others: new ones from this offset on, those that were read before where they are."""
        ...


@dataclass(frozen=True, slots=True)
class Listeners:
    """Whom to tell that partitions came, are about to go, or are gone already."""

    assigned: Listener | None = None
    revoked: Listener | None = None
    lost: Listener | None = None


class Group:
    """One consumer's place in one group."""

    def __init__(
        self,
        cluster: Cluster,
        rules: GroupRules,
        *,
        protocol: GroupProtocol,
        auto_commit_seconds: float | None,
        require_stable: bool,
        signal: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._rules = rules
        self._protocol = protocol
        self._auto_commit_seconds = auto_commit_seconds
        self._require_stable = require_stable
        self._signal = signal
        self._coordinator = GroupCoordinator(cluster, rules.group)
        self._listeners = Listeners()
        self._member: GroupMembership | None = None
        self._running: asyncio.Task[None] | None = None
        self._attending: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._commit_at = float("inf")
        self._committed: dict[TopicPartition, Offset | None] = {}

    @property
    def is_subscribed(self) -> bool:
        return self._member is not None

    @property
    def is_settled(self) -> bool:
        """Return whether the reader has what the group assigned to it, be it nothing; False while it joins."""
        return self._member is not None and self._member.is_settled

    def failing_since(self) -> float | None:
        """Return since when the coordinator has not answered this member; None while it does."""
        return None if self._member is None else self._member.failing_since

    def last_problem(self) -> KafkaError | None:
        """Return why the coordinator did not answer."""
        return None if self._member is None else self._member.last_problem

    @property
    def member_id(self) -> str:
        """Return the id under which the coordinator knows this member; empty before it has joined."""
        return "" if self._member is None else self._member.identity.member_id

    def metadata(self) -> GroupMetadata:
        """Return what a transaction needs in order to commit for this member; raise where it must not."""
        if self._auto_commit_seconds is not None:
            raise ValueError(
                "this consumer commits by itself, and its offsets would not wait for the transaction; "
                "give it Consumer(..., auto_commit=False)"
            )
        return GroupMetadata(self._rules.group, self._identity())

    def subscribe(self, interest: Interest, listeners: Listeners) -> None:
        """Take part in reading these topics from now on."""
        self._listeners = listeners
        if interest.pattern is not None:
            self._cluster.watch_all()
        self._cluster.watch(interest.topics)
        if self._member is None:
            kind = _MEMBERS[self._protocol]
            self._member = kind(self._cluster, self._coordinator, self._rules, interest, self._signal)
            self._running = asyncio.create_task(self._member.run())
            if self._auto_commit_seconds is not None:
                self._commit_at = asyncio.get_running_loop().time() + self._auto_commit_seconds
        else:
            self._member.interest_changed(interest)

    async def unsubscribe(self, reader: Reader) -> None:
        """Commit, let go of everything and leave."""
        member = self._member
        if member is None:
            return
        for task in (self._attending, self._committing, self._running):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._attending = self._committing = self._running = None
        try:
            async with asyncio.timeout(_LEAVE_SECONDS_MAX):
                if member.owned and not member.lost:
                    await self._let_go(reader, frozenset(reader.held()))
                await member.leave()
        except (KafkaError, TimeoutError):
            pass  # the group will notice by itself, after the session's time
        self._member = None
        reader.hold({})

    # In the reader's time ---------------------------------------------------------------------------------

    def needs_attention(self) -> bool:
        """Return whether `attend` has something to do before the next record."""
        member = self._member
        return member is not None and (member.wants_reader or self._attending is not None)

    def polled(self, reader: Reader) -> None:
        """Take note that the reader is done with what it was given, and commit that where it is time to."""
        if self._member is None:
            return
        self._member.polled()
        now = asyncio.get_running_loop().time()
        if now >= self._commit_at and self._committing is None and not self.needs_attention():
            assert self._auto_commit_seconds is not None
            self._commit_at = now + self._auto_commit_seconds
            self._committing = asyncio.create_task(self._commit_quietly(self._unwritten(reader)))
            self._committing.add_done_callback(self._commit_done)

    def waits(self, *, yes: bool) -> None:
        """Take note that the reader waits for records, or no longer does."""
        if self._member is not None:
            self._member.reader_waits = yes
            self._member.polled()

    async def attend(self, reader: Reader) -> None:
        """Bring the reader to what the group says it should have; a caller may give up, and it goes on by itself."""
        if self._attending is None:
            assert self._member is not None
            self._attending = asyncio.create_task(self._attend(self._member, reader))
        attending = self._attending
        try:
            await asyncio.shield(attending)
        finally:
            if self._attending is attending and attending.done():
                self._attending = None

    async def _attend(self, member: GroupMembership, reader: Reader) -> None:
        if member.lost:
            lost = sorted(reader.held())
            reader.hold({})
            member.told()
            member.applied(NOTHING)
            await _tell(self._listeners.lost or self._listeners.revoked, lost)
        if member.problem is not None:
            problem = member.problem
            member.told()
            raise problem
        target = member.begin()
        if target is None:
            return
        held = frozenset(reader.held())
        try:
            if held - target:
                await self._let_go(reader, held - target)
            if target - held:
                await self._take_over(member, reader, target - held)
        finally:
            member.applied(frozenset(reader.held()), target=target)

    async def _let_go(self, reader: Reader, leaving: Partitions) -> None:
        if self._auto_commit_seconds is not None:
            await self._commit_quietly(
                {partition: at for partition, at in self._unwritten(reader).items() if partition in leaving}
            )
        await _tell(self._listeners.revoked, sorted(leaving))
        reader.hold({partition: at for partition, at in reader.held().items() if partition not in leaving})

    async def _take_over(self, member: GroupMembership, reader: Reader, coming: Partitions) -> None:
        committed = await committed_offsets(
            self._cluster,
            self._coordinator,
            coming,
            identity=member.identity,
            require_stable=self._require_stable,
        )
        places = {partition: None if found is None else found.offset for partition, found in committed.items()}
        self._committed.update(places)  # others may have committed there meanwhile
        reader.hold({**reader.held(), **places})
        await _tell(self._listeners.assigned, sorted(coming))

    # Offsets ----------------------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Write these down; raise CommitFailed where the group has gone on without this member."""
        await commit_offsets(self._cluster, self._coordinator, self._identity(), offsets)
        self._committed.update({partition: entry.offset for partition, entry in offsets.items()})

    async def commit_positions(self, reader: Reader) -> None:
        """Write down where the reader stands."""
        await self.commit(_positions(reader))

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset | None]:
        """Return what the group has committed."""
        return await committed_offsets(
            self._cluster, self._coordinator, partitions, require_stable=self._require_stable
        )

    def _identity(self) -> Identity:
        """Return who commits now; raise where the group has gone on."""
        if self._member is None:
            return OUTSIDE
        if self._member.lost:  # by now it may be a member again, but not with what the reader has
            raise CommitFailed(self._rules.group, ErrorCode.UNKNOWN_MEMBER_ID)
        return self._member.identity

    def _unwritten(self, reader: Reader) -> dict[TopicPartition, CommittedOffset]:
        """Return where the reader stands, as far as this member has not written that down already."""
        positions = _positions(reader)
        return {at: entry for at, entry in positions.items() if self._committed.get(at) != entry.offset}

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        try:
            await self.commit(offsets)
        except KafkaError:
            pass  # records may come twice after a change of members, which is what at-least-once means

    def _commit_done(self, _task: asyncio.Task[None]) -> None:
        self._committing = None


def _positions(reader: Reader) -> dict[TopicPartition, CommittedOffset]:
    """Return where the reader stands, as far as that is known."""
    return {partition: CommittedOffset(at) for partition, at in reader.held().items() if at is not None}


async def _tell(listener: Listener | None, partitions: list[TopicPartition]) -> None:
    if listener is not None and partitions:
        answer = listener(partitions)
        if inspect.isawaitable(answer):
            await answer
