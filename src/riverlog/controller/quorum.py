"""The quorum behind the metadata log: runs this node's Raft machine, does what it asks, and tells it what came of it.

Effects are carried out one after the other. What must be on the medium first (the vote, a log that is cut off, a
snapshot that takes its place) holds back those behind it. A batch holds back only the next one: one batch at a time is
not flushed yet. While the disk has no room, or the system no descriptors, this node stands still and tries again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, assert_never

from riverlog.controller.limits import QUORUM_EFFECTS_MAX
from riverlog.controller.past import QuorumPast
from riverlog.controller.patience import TRY_AGAIN_SECONDS, ClosedMeanwhile, Patience
from riverlog.controller.quorum_ports import NobodyListens, NoResponse, QuorumOwner, QuorumPeers, Reply, Unsupported
from riverlog.controller.snapshot_files import BadMetadata
from riverlog.controller.storage import MetadataStorage, batches_in
from riverlog.model.disk_errors import DiskTrouble, judge
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, Address, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Instant, Ticket
from riverlog.model.ports import Clock, Random, Workers
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.observe.quorum_stats import QuorumStats
from riverlog.raft.control_records import encode_batch, records_of
from riverlog.raft.effects import (
    Answer,
    Append,
    AppendControl,
    Call,
    Committed,
    Effect,
    InstallSnapshot,
    LeaderChanged,
    SaveElection,
    Truncate,
    WriteSnapshot,
)
from riverlog.raft.events import (
    Answered,
    Appended,
    Asked,
    CallFailed,
    Event,
    Flushed,
    LogShortened,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotTaken,
    Stalled,
    Stopping,
    Woken,
)
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.machine import AnyRole, Raft
from riverlog.raft.messages import (
    FetchedBatches,
    FetchResponse,
    FetchSnapshotResponse,
    LogRange,
    Request,
    SnapshotRange,
)
from riverlog.raft.quorum_state import encode_election
from riverlog.raft.replica import Replica, Timing
from riverlog.raft.roles.nominee import Candidate, Prospective
from riverlog.raft.roles.waiting import Resigned
from riverlog.raft.voters import ReplicaKey, VoterSet

_STALL_SECONDS: Final = 0.15
"""Who wakes so much later than planned has not heard what others said meanwhile."""
_HANDOVER_SECONDS: Final = 1.0
_CHANGES_LOG: Final = (Append, AppendControl, Truncate, InstallSnapshot)


class MetadataQuorum:
    """This node's share in the quorum."""

    def __init__(
        self,
        storage: MetadataStorage,
        clock: Clock,
        workers: Workers,
        random: Random,
        *,
        key: ReplicaKey,
        past: QuorumPast,
        may_vote: bool = True,
        peers: QuorumPeers | None = None,
        endpoints: tuple[Endpoint, ...] = (),
        listener: str = "CONTROLLER",
        bootstrap: tuple[Address, ...] = (),
        timing: Timing | None = None,
        auto_join: bool = False,
    ) -> None:
        """Begin where the node stopped; `start` carries out the first steps."""
        self.storage = storage
        self.failure: Exception | None = None
        self._clock = clock
        self._workers = workers
        self._peers = peers
        self._owner: QuorumOwner | None = None
        replica = Replica(
            key=key,
            endpoints=endpoints,
            listener=listener,
            log=storage.tail(),
            voters=past.voters,
            kraft_version=past.kraft_version,
            election=past.election,
            bootstrap=bootstrap,
            timing=timing or Timing(),
            random=random,
            may_vote=may_vote,
            auto_join=auto_join,
        )
        self._raft = Raft(replica, self._now())
        self._effects: deque[Effect] = deque()
        self._high_watermark: Offset = NO_OFFSET
        self._carrying_out = False
        self._starting = False
        self._busy: asyncio.Task[None] | None = None  # with an effect that holds back those behind it
        self._flushing: asyncio.Task[None] | None = None
        self._between_writes: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._patience = Patience(workers)
        self._asked: dict[Ticket, asyncio.Future[Reply]] = {}
        self._last_ticket = Ticket(0)
        self._tasks: set[asyncio.Task[None]] = set()  # calls and reads under way
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at: Instant | None = None
        self._closing = False
        self._gave_up = False  # while a flush was under way
        self.stats = QuorumStats()
        self._election_began: Instant | None = None
        self._logger = get_logger("riverlog.quorum")

    @property
    def key(self) -> ReplicaKey:
        return self._raft.replica.key

    @property
    def role(self) -> AnyRole:
        return self._raft.role

    @property
    def epoch(self) -> LeaderEpoch:
        return self._raft.epoch

    @property
    def leader_id(self) -> NodeId | None:
        return self._raft.replica.leader_id

    @property
    def voted_for(self) -> ReplicaKey | None:
        """Return for whom this node has voted in this epoch."""
        return self._raft.replica.election.voted_for

    @property
    def leader_address(self) -> Address | None:
        """Return where the leader listens for controllers and brokers."""
        return self._raft.replica.leader_address

    @property
    def leads(self) -> bool:
        """Return whether this node leads, and has committed a record of its epoch: then it may decide."""
        return NO_OFFSET < self._raft.leads_from < self.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self._raft.replica.voters.latest

    @property
    def kraft_version(self) -> int:
        return self._raft.replica.kraft_version.latest

    def voters_at(self, end: Offset) -> tuple[VoterSet, int]:
        """Return who votes, and at which level, by the records below an offset."""
        replica = self._raft.replica
        return replica.voters.at(end), replica.kraft_version.at(end)

    @property
    def high_watermark(self) -> Offset:
        """Return the offset below which all is committed and in the log here: Raft may be ahead of the log."""
        return self._high_watermark

    @property
    def is_installing(self) -> bool:
        """Return whether a snapshot that was fetched is about to take the place of the log."""
        return self._raft.replica.installing

    @property
    def may_lead(self) -> bool:
        """Return whether this node is a controller, be it a voter today or not."""
        return self._raft.replica.may_vote

    @property
    def is_only_voter(self) -> bool:
        return self._raft.replica.is_only_voter

    def start(self, owner: QuorumOwner) -> None:
        """Begin. Who is the only voter leads when this returns, and waits for the disk; OSError where that fails."""
        self._owner = owner
        self._starting = True
        try:
            self._effects.extend(self._raft.start(self._now()))
            self._carry_out()
        except Exception as error:  # nothing may be written behind what is half there
            self.failure = error
            raise
        finally:
            self._starting = False
        self._arm()

    async def close(self) -> None:
        """Hand over, if this node leads others, and finish what is under way."""
        if self._owner is not None:  # else the node's start failed before this began
            self._hear(Stopping())
        if self._tasks and isinstance(self._raft.role, Resigned):
            await asyncio.wait(self._tasks, timeout=_HANDOVER_SECONDS)
        self._closing = True
        self._patience.close()
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        for step in (self._busy, self._flushing):
            if step is not None:
                await asyncio.wait([step])
        if self._peers is not None:
            await self._peers.close()
        for reply in self._asked.values():
            if not reply.done():
                reply.set_exception(NoResponse("this node is stopping"))
                reply.exception()  # whoever asked may be gone
        self._asked.clear()
        if self.failure is None and not self._gave_up:
            self.storage.close()
        else:
            self.storage.log.release()

    # -- what this node is asked, and what it adds

    def ask(self, request: Request) -> "asyncio.Future[Reply]":
        """Take a request of a peer, or of somebody who administers the quorum; NoResponse where this node has stopped,
        or its disk does not keep up."""
        if self.failure is not None or self._closing or len(self._effects) >= QUORUM_EFFECTS_MAX:
            raise NoResponse("this node takes no part in the quorum for the moment")
        ticket = self._last_ticket = Ticket(self._last_ticket + 1)
        reply = self._asked[ticket] = asyncio.get_running_loop().create_future()
        self._hear(Asked(ticket, request))
        return reply

    def write_soon(self) -> None:
        """Look for records that wait to be written."""
        self._carry_out()

    def between_writes(self, work: Callable[[], None]) -> Awaitable[None]:
        """Do a piece of work on the loop while everything that was appended is flushed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._between_writes.append((work, done))
        self._carry_out()
        return done

    def snapshot_taken(self, snapshot: SnapshotId, size: int) -> None:
        """Note a snapshot of all records below its end, which is on the medium."""
        self._hear(SnapshotTaken(snapshot, size))

    def shortened(self, start: Offset) -> None:
        """Note that the log begins later, at the end of a snapshot."""
        self._hear(LogShortened(start))

    def _now(self) -> Instant:
        return Instant(self._clock.monotonic())

    def _hear(self, event: Event) -> None:
        if self.failure is not None or self._closing:
            return
        led_from = self._raft.leads_from
        try:
            self._effects.extend(self._raft.on(event, self._now()))
            self._time_election()
        except Exception as error:
            self.fail(error)
            return
        if self._raft.leads_from == NO_OFFSET != led_from:  # also where it has resigned, and nobody else leads yet
            self._effects.append(LeaderChanged(self.epoch, self.leader_id))
        self._carry_out()
        if not self._starting:
            self._arm()

    def _time_election(self) -> None:
        """Note how long it took from the beginning of an election until somebody leads."""
        if isinstance(self._raft.role, Prospective | Candidate):
            self._election_began = self._now() if self._election_began is None else self._election_began
        elif self._election_began is not None and self.leader_id is not None:
            self.stats.elections.observe(self._now() - self._election_began)
            self._election_began = None

    def _arm(self) -> None:
        """Wake the machine when it next wants to be."""
        deadline = self._raft.deadline
        if deadline == self._wakes_at and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wakes_at = deadline
        if deadline is not None and not self._closing and self.failure is None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, deadline - self._now()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        late = 0.0 if self._wakes_at is None else self._now() - self._wakes_at
        if late > _STALL_SECONDS:
            self._logger.warning("the event loop stood still", seconds=round(late, 3))
            self._hear(Stalled())
            if self._owner is not None:
                self._owner.stalled(late)
        self._hear(Woken())

    def _carry_out(self) -> None:
        """Do what is to be done, in order, until something has to be waited for."""
        if self._carrying_out or self._closing or self.failure is not None:
            return
        self._carrying_out = True
        try:
            while self._busy is None and self._step():
                pass
        except Exception as error:
            if self._starting:
                raise
            self.fail(error)
        finally:
            self._carrying_out = False

    def _step(self) -> bool:
        """Do the next thing; return whether there was one that need not wait."""
        if self._effects and not self._is_held_back(self._effects[0]):
            effect = self._effects.popleft()
            self._try(partial(self._do, effect), again=partial(self._effects.appendleft, effect))
            return True
        if self._flushing is not None:
            return False
        if self._between_writes:
            work, done = self._between_writes.popleft()
            try:
                work()
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(None)
            return True
        return not self._effects and self._write_records()

    def _is_held_back(self, effect: Effect) -> bool:
        """Return whether an effect must wait for a flush, or for a snapshot that is written here."""
        assert self._owner is not None
        is_overtaken = isinstance(effect, InstallSnapshot) and self._owner.is_writing_snapshot
        return is_overtaken or (self._flushing is not None and isinstance(effect, _CHANGES_LOG))

    def _try(self, work: Callable[[], None], again: Callable[[], None] = lambda: None) -> None:
        """Do something on the loop; where it cannot begin for something that may pass, stand still and try again."""
        try:
            work()
        except (OSError, Refusal) as error:
            if self._starting or not self._patience.may_pass(error):
                raise
            again()
            self._busy = asyncio.get_running_loop().create_task(self._stand_still())
        else:
            if self._busy is None:
                self._patience.went_on()

    async def _stand_still(self) -> None:
        await asyncio.sleep(TRY_AGAIN_SECONDS)
        self._busy = None
        self._carry_out()

    def _beside(self, work: Callable[[], None], then: Callable[[], None] = lambda: None) -> None:
        """Do something that waits for the disk, and hold back what is behind it."""
        if self._starting:
            work()
            then()
        else:
            self._busy = asyncio.get_running_loop().create_task(self._wait_for(work, then))

    async def _wait_for(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        try:
            await self._patience.insist(work, beside=True)
        except ClosedMeanwhile:
            return
        except Exception as error:
            self._busy = None
            self.fail(error)
            return
        self._busy = None
        then()
        self._carry_out()

    def fail(self, error: Exception) -> None:
        """End this node's share for good."""
        if self.failure is None:
            self.failure = error
            assert self._owner is not None
            self._owner.failed(error)

    def _do(self, effect: Effect) -> None:
        assert self._owner is not None
        match effect:
            case SaveElection():
                self._save(effect)
            case Call():
                self._task(self._call(effect))
            case Answer():
                self._respond(effect)
            case Append(fetched):
                self._append_fetched(fetched)
            case AppendControl():
                self._append_control(effect)
            case Truncate(end):
                self.storage.truncate(end)
                self._hear(Flushed(self.storage.end_offset, self._raft.replica.log.generation))
            case WriteSnapshot(snapshot, position, content):
                self._beside(partial(self.storage.write_part, snapshot, position, content))
            case InstallSnapshot():
                self._install(effect)
            case Committed(high_watermark):
                assert high_watermark <= self.storage.end_offset, "what is committed is in the log"
                self._high_watermark = high_watermark
                self._owner.committed(high_watermark)
            case LeaderChanged(epoch, leader_id):
                self._logger.info("quorum leader", epoch=epoch, leader="none" if leader_id is None else leader_id)
                self._owner.leadership_changed()
            case _:
                assert_never(effect)

    def _save(self, effect: SaveElection) -> None:
        """Write the vote; of several that follow each other only the last one."""
        for later in self._effects:
            if isinstance(later, SaveElection):
                return
            if not isinstance(later, LeaderChanged):
                break
        content = encode_election(effect.election, kraft_version=effect.kraft_version, voters=self.voters.ids)
        self._beside(partial(self._save_vote, content))

    def _save_vote(self, content: bytes) -> None:
        """The only voter may go on without room for its vote: nothing of an epoch counts before its first record is
        in the log, and from there the next start knows it."""
        try:
            self.storage.save_vote(content)
        except OSError as error:
            if judge(error) is not DiskTrouble.FULL or not self.is_only_voter:
                raise
            self._logger.warning("no room for the vote on the disk", detail=str(error))

    def _append_fetched(self, fetched: FetchedBatches) -> None:
        """Append the first batch; the others come when it is flushed."""
        assert isinstance(fetched.content, memoryview)
        first = next(batches_in(fetched.content))
        self.storage.append_fetched(first)
        if len(fetched.batches) > 1:
            self._effects.appendleft(Append(FetchedBatches(fetched.batches[1:], fetched.content[len(first) :])))
        self._flush()

    def _append_control(self, effect: AppendControl) -> None:
        records, now_ms = records_of(effect), self._clock.wall_ms()
        assert effect.base_offset == self.storage.end_offset
        batch = encode_batch(records, base_offset=effect.base_offset, epoch=effect.epoch, timestamp_ms=now_ms)
        self.storage.append(memoryview(batch), effect.epoch)
        self._flush()

    def _write_records(self) -> bool:
        """Write the records that wait, if this node leads; return whether there were any."""
        assert self._owner is not None
        batch = self._owner.next_batch() if self.leads else None
        if batch is None:
            return False
        before = self.storage.end_offset
        try:
            end = self.storage.append(batch, self.epoch)
        except Refusal as refusal:
            self._owner.refused(refusal)
            return True
        except OSError as error:
            if not self._patience.may_pass(error):
                raise
            self._busy = asyncio.get_running_loop().create_task(self._stand_still())
            return True
        self._patience.went_on()
        self._owner.written(end)
        self._effects.extend(self._raft.on(Appended(end - before), self._now()))
        self._flush()
        return True

    def _flush(self) -> None:
        """Flush what was appended; nothing else is appended meanwhile."""
        assert self._flushing is None
        if self._starting:
            self.storage.log.flush()
            self._flushed(self.storage.end_offset, self._raft.replica.log.generation)
        else:
            self._flushing = asyncio.get_running_loop().create_task(self._flush_beside())

    async def _flush_beside(self) -> None:
        log, generation = self.storage.log, self._raft.replica.log.generation
        try:
            plan = await self._patience.insist(log.pending_sync, beside=False)
            await self._patience.insist(plan.run, beside=True)
            if self.storage.lost_names is not None:
                raise self.storage.lost_names
            log.synced(plan)
        except ClosedMeanwhile:
            self._gave_up = True
            return
        except Exception as error:
            self.fail(error)
            return
        finally:
            self._flushing = None
        self._flushed(plan.upto, generation)
        self._carry_out()

    def _flushed(self, end: Offset, generation: int) -> None:
        self.storage.note_flushed(end)
        self._hear(Flushed(end, generation))

    def _install(self, effect: InstallSnapshot) -> None:
        """Check a snapshot that was fetched, and begin again behind it."""
        snapshot, size = effect
        event: Event = SnapshotRefused()

        def install() -> None:
            nonlocal event
            try:
                [said] = self.storage.read_part(snapshot)
            except BadMetadata as error:
                self._logger.error("snapshot refused", snapshot=str(snapshot), detail=str(error))
                return
            self.storage.install(snapshot)
            event = SnapshotInstalled(snapshot, size, said.voters, said.kraft_version or 0)

        def done() -> None:
            assert self._owner is not None
            if isinstance(event, SnapshotInstalled):
                self.storage.note_flushed(snapshot.end_offset)
                self._owner.installed()
            self._hear(event)

        self._beside(install, done)

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, call: Call) -> None:
        event: Event
        try:
            if self._peers is None:
                raise NoResponse("this node has no way to other controllers")
            event = Answered(call.number, await self._peers.ask(call.address, call.request))
        except Unsupported:
            event = CallFailed(call.number, unsupported=True)
        except NobodyListens:
            event = CallFailed(call.number, refused=True)
        except NoResponse:
            event = CallFailed(call.number)
        except Exception as error:  # the machine waits for this number
            contained("a request to a controller", error)
            event = CallFailed(call.number)
        self._hear(event)

    def _respond(self, effect: Answer) -> None:
        reply, response = self._asked[effect.ticket], effect.response
        content: bytes | None = None
        if isinstance(response, FetchResponse) and isinstance(response.records, LogRange):
            content = self.storage.read(*response.records)
        del self._asked[effect.ticket]
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.content, SnapshotRange):
            self._task(self._respond_with_snapshot(reply, response, response.content))
        elif not reply.done():
            reply.set_result(Reply(response, content))

    async def _respond_with_snapshot(
        self, reply: "asyncio.Future[Reply]", response: FetchSnapshotResponse, wanted: SnapshotRange
    ) -> None:
        try:
            content: bytes | None = await self._workers.run(partial(self.storage.read_snapshot, *wanted))
        except OSError:  # a newer one has taken its place
            content = None
            response = FetchSnapshotResponse(response.leadership._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND))
        if not reply.done():
            reply.set_result(Reply(response, content))
