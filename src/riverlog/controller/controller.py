"""The controller of a node: decides about the cluster's metadata where it leads, and loads what others have decided.

It runs the metadata machine on the metadata log. What a command came to is in the view before whoever asked gets the
reply. Who becomes leader decides once the view has all that is in the log.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Never, TypeVar

from riverlog.controller.limits import RECORDS_UNTIL_KEPT
from riverlog.controller.loader import MetadataLoader
from riverlog.controller.log import MetadataLog, NotController
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.view import MetadataView
from riverlog.metadata.commands.liveness import BecomeActive, ExcuseSilence, Woken
from riverlog.metadata.commands.topics import TopicDefaults
from riverlog.metadata.features import FIRST_LEVELS
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset
from riverlog.model.limits import REPLICAS_MAX
from riverlog.model.machine import Command, Instant
from riverlog.model.ports import Clock
from riverlog.observe.logging import get_logger
from riverlog.observe.process import keep_objects
from riverlog.runner import Runner, Stopped

if TYPE_CHECKING:
    from riverlog.metadata.broker_index import BrokerIndex

Reply = TypeVar("Reply")

_WAKE_SECONDS_MIN: Final = 0.001
"""A timer may fire a rounding error before its time; a machine that is woken too early wants to be woken again."""


class Controller:
    """Runs the metadata machine where this node leads."""

    def __init__(
        self,
        *,
        log: MetadataLog,
        view: MetadataView,
        clock: Clock,
        failed: Callable[[Exception], None],
        alone: bool = False,
        first_levels: Mapping[str, int] = FIRST_LEVELS,
    ) -> None:
        """Build a controller. `failed` is called when the log has failed for good.

        One that is `alone` has no other brokers to hear of than its own. A cluster that has no metadata yet begins with
        `first_levels` of features.
        """
        self._log = log
        self._view = view
        self._clock = clock
        self._failed = failed
        self._loader = MetadataLoader(log.storage, view)
        self._loading: asyncio.Task[None] | None = None
        self._runner: Runner[MetadataMachine, MetadataRecord, Never] | None = None  # while this node decides
        self._changed = asyncio.Event()
        self._alone = alone
        self._index: BrokerIndex | None = None  # of the view, where this node may have to decide for a cluster
        self._first_levels = first_levels
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at: Instant | None = None
        self._waking: asyncio.Future[None] | None = None
        self._applied = 0  # records since objects were kept
        self._closing = False
        self._logger = get_logger("riverlog.metadata")

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the metadata's last record."""
        return self._log.end_offset

    @property
    def next_offset(self) -> Offset:
        """Return the offset of the record that is written next."""
        return self._log.next_offset

    @property
    def loaded_offset(self) -> Offset:
        """Return the offset below which everything is in the view."""
        return self._loader.offset if self._runner is None else self._log.resolved_end

    @property
    def log(self) -> MetadataLog:
        """Return the log of the metadata, with its snapshots."""
        return self._log

    @property
    def quorum(self) -> MetadataQuorum:
        """Return who votes on the metadata, who leads, and what is committed."""
        return self._log.quorum

    @property
    def image(self) -> MetadataImage:
        """Return the newest committed view."""
        return self._view.image

    @property
    def index(self) -> "BrokerIndex | None":
        """Return what each broker has, where this node may have to decide for a cluster."""
        return self._index if self._runner is None else self._runner.machine.index

    @property
    def snapshot_at(self) -> float:
        """Return when this node made its last snapshot, or started, by its clock."""
        return self._log.snapshot_at

    @property
    def is_active(self) -> bool:
        """Return whether this node decides."""
        return self._runner is not None

    def start(self) -> None:
        """Read what is here, and take part in the quorum; BadMetadata where it is damaged.

        Who is the only voter reads everything and decides when this returns. Others know at first what the newest
        snapshot says.
        """
        loader, quorum = self._loader, self.quorum
        loader.begin()
        if quorum.is_only_voter:  # whatever is here is committed, and read before anything is written
            loader.load(self._log.end_offset)
        if not self._alone and quorum.may_lead:
            from riverlog.metadata.broker_index import BrokerIndex  # a node that is alone starts without it

            self._index = BrokerIndex.of(self._view.image)
        self._log.changed, self._log.failed_with, self._log.was_stalled = self._look, self._fail, self.stalled
        quorum.start(self._log)
        if quorum.leads:
            loader.load(quorum.high_watermark)
            self._lead()
        self._log.storage.remove_older_snapshots()  # a newer one was read whole

    def submit(self, command: Command[MetadataRecord, Reply]) -> "asyncio.Future[Reply]":
        """Decide now; the reply comes once what it says is committed. NotController where this node does not decide,
        another Refusal where it failed."""
        if self._runner is None:
            raise NotController
        reply = self._runner.submit(command)
        self._arm()
        return reply

    async def changed(self) -> None:
        """Wait until more is in the view, or somebody else leads."""
        self._changed.clear()
        await self._changed.wait()

    async def close(self) -> None:
        """Finish what is under way."""
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._runner is not None:
            await self._runner.drain()
        await self._log.close()
        if self._loading is not None:
            await asyncio.wait([self._loading])

    def _look(self) -> None:
        """Load what is committed, or begin to decide; called after whoever submitted has heard of it."""
        self._changed.set()
        if self._runner is not None and not self.quorum.leads:
            self._runner.drop(NotController())
        if self._runner is not None or self._loading is not None or self._closing or self.quorum.failure is not None:
            return
        if self._loader.offset < self.quorum.high_watermark:
            self._loading = asyncio.get_running_loop().create_task(self._load())
        elif self.quorum.leads and self._log.end_offset == self.quorum.high_watermark:
            self._lead()

    def _lead(self) -> None:
        settings, image = self._view.settings, self._view.image
        index, self._index = self._index, None  # the machine's from now on
        defaults = TopicDefaults(
            settings.num_partitions,
            settings.default_replication_factor,
            settings.layers,
            replicas_max=None if self._alone else REPLICAS_MAX,
        )
        self._runner = Runner(
            new_machine=lambda: MetadataMachine(defaults, image, index),
            log=self._log,
            clock=self._clock,
            view=lambda machine: machine.image,
            committed=self._publish,
            failed=self._lost,
        )
        self._log.lead()
        if self._loader.in_transaction:
            self._log.abort_transaction()
        self._runner.start()
        if not self._alone:
            self._logger.info("controller active", epoch=self.quorum.epoch)
            self._ask_machine(
                BecomeActive(self._first_levels, session_seconds=settings.broker_session_timeout_ms / 1000)
            )
        self._changed.set()

    def _ask_machine(self, command: Command[MetadataRecord, None]) -> None:
        """Have something decided that nobody waits for."""
        try:
            self.submit(command).add_done_callback(_forget)
        except (Refusal, Stopped) as error:
            self._logger.warning("controller could not decide", command=type(command).__name__, detail=str(error))

    def _arm(self) -> None:
        """Wake the machine when it next wants to be."""
        if self._waking is not None:
            return
        deadline = None if self._runner is None or self._alone else self._runner.machine.next_deadline()
        if deadline == self._wakes_at and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wakes_at = deadline
        if deadline is not None and not self._closing:
            left = deadline - self._clock.monotonic()
            seconds = max(left, _WAKE_SECONDS_MIN) if left > 0 else 0.0
            self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        """Wake the machine, again only when what it decided is committed: a long walk must not fill the log."""
        self._timer = None
        if self._runner is None:
            return
        try:
            self._waking = self._runner.submit(Woken())
        except (Refusal, Stopped):  # this node leads no more, and hears of it soon
            return
        self._waking.add_done_callback(self._woken)

    def _woken(self, reply: "asyncio.Future[None]") -> None:
        _forget(reply)
        self._waking = None
        self._arm()

    def stalled(self, seconds: float) -> None:
        """Count nobody's silence while this process stood still."""
        if self._runner is not None and not self._alone:
            self._ask_machine(ExcuseSilence(seconds))

    async def _load(self) -> None:
        """Bring the view up to what is committed."""
        try:
            while not self._closing and self._load_some():
                self._changed.set()
                await asyncio.sleep(0)
            if not self._loader.in_transaction:
                self._snapshot_if_due(self._view.image, self._loader.offset)
        except Exception as error:
            self.quorum.fail(error)
        finally:
            self._loading = None
        self._look()

    def _load_some(self) -> bool:
        """Load some records; return whether there are more."""
        before = self._view.image
        offset = self._loader.offset
        has_more = self._loader.load_some(self.quorum.high_watermark)
        self._note_applied(max(0, self._loader.offset - offset))
        if self._index is not None:
            self._index.follow(before, self._view.image)
        return has_more

    def _note_applied(self, count: int) -> None:
        """Have objects that stay looked at no more, before Python looks through a large view for cycles once again."""
        self._applied += count
        if self._applied >= RECORDS_UNTIL_KEPT:
            self._applied = 0
            keep_objects()

    def _publish(self, image: MetadataImage, records: tuple[MetadataRecord, ...], _effects: tuple[Never, ...]) -> None:
        self._view.publish(image, records)
        self._note_applied(len(records))
        self._changed.set()
        assert self._runner is not None
        if self._runner.settled:
            self._snapshot_if_due(image, self._log.resolved_end)

    def _snapshot_if_due(self, image: MetadataImage, end: Offset) -> None:
        if self._log.bytes_since_snapshot > self._view.settings.metadata_log_max_record_bytes_between_snapshots:
            self._log.begin_snapshot(image, end)

    def _lost(self, error: Exception) -> None:
        """Decide no more: there was no room, or another node leads. Go on from what is committed."""
        assert self._runner is not None
        machine, self._runner = self._runner.machine, None
        if not self._alone and isinstance(error, Refusal):
            self._index = machine.index
            self._index.follow(machine.image, self._view.image)
        self._arm()
        self._loader.go_on_from(self._log.resolved_end)
        if isinstance(error, Refusal):
            self._look()
        else:
            self.quorum.fail(error)

    def _fail(self, error: Exception) -> None:
        self._failed(error)


def _forget(reply: "asyncio.Future[None]") -> None:
    """Take note of an end that nobody waits for: what failed comes again with the next deadline."""
    if not reply.cancelled():
        reply.exception()
