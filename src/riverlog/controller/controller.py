"""The controller of a node: decides about the cluster's metadata where it leads, and loads what others have decided.

It runs the metadata machine on the metadata log. What a command came to is in the view before whoever asked gets the
reply. Who becomes leader decides once the view has all that is in the log.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from riverlog.controller.loader import MetadataLoader
from riverlog.controller.log import MetadataLog, NotController
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.view import MetadataView
from riverlog.metadata.commands.topics import TopicDefaults
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import AbortTransactionRecord, MetadataRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset
from riverlog.model.machine import Command
from riverlog.model.ports import Clock
from riverlog.runner import Runner

Reply = TypeVar("Reply")


class Controller:
    """Runs the metadata machine where this node leads."""

    def __init__(
        self,
        *,
        log: MetadataLog,
        view: MetadataView,
        clock: Clock,
        failed: Callable[[Exception], None],
    ) -> None:
        """Build a controller. `failed` is called when the log has failed for good."""
        self._log = log
        self._view = view
        self._clock = clock
        self._failed = failed
        self._loader = MetadataLoader(log.storage, view)
        self._loading: asyncio.Task[None] | None = None
        self._runner: Runner[MetadataMachine, MetadataRecord, Never] | None = None  # while this node decides
        self._changed = asyncio.Event()
        self._closing = False

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
    def quorum(self) -> MetadataQuorum:
        """Return who votes on the metadata, who leads, and what is committed."""
        return self._log.quorum

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
        self._log.changed, self._log.failed_with = self._look, self._fail
        quorum.start(self._log)
        if quorum.leads:
            loader.load(quorum.high_watermark)
            self._lead()
        self._log.storage.remove_older_snapshots()  # a newer one was read whole

    def submit(self, command: Command[MetadataRecord, Reply]) -> Awaitable[Reply]:
        """Decide now; the reply comes once what it says is committed. NotController where this node does not decide,
        another Refusal where it failed."""
        if self._runner is None:
            raise NotController
        return self._runner.submit(command)

    async def changed(self) -> None:
        """Wait until more is in the view, or somebody else leads."""
        self._changed.clear()
        await self._changed.wait()

    async def close(self) -> None:
        """Finish what is under way."""
        self._closing = True
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
        defaults = TopicDefaults(settings.num_partitions, settings.default_replication_factor, settings.layers)
        self._runner = Runner(
            new_machine=lambda: MetadataMachine(defaults, image),
            log=self._log,
            clock=self._clock,
            view=lambda machine: machine.image,
            committed=self._publish,
            failed=self._lost,
        )
        self._log.lead()
        if self._loader.in_transaction:  # whoever began it is gone; without this the records to come would belong to it
            self._log.append((AbortTransactionRecord(),))
        self._runner.start()
        self._changed.set()

    async def _load(self) -> None:
        """Bring the view up to what is committed."""
        try:
            while not self._closing and self._loader.load_some(self.quorum.high_watermark):
                self._changed.set()
                await asyncio.sleep(0)
            if not self._loader.in_transaction:
                self._snapshot_if_due(self._view.image, self._loader.offset)
        except Exception as error:
            self.quorum.fail(error)
        finally:
            self._loading = None
        self._look()

    def _publish(self, image: MetadataImage, records: tuple[MetadataRecord, ...], _effects: tuple[Never, ...]) -> None:
        self._view.publish(image, records)
        self._changed.set()
        assert self._runner is not None
        if self._runner.settled:
            self._snapshot_if_due(image, self._log.resolved_end)

    def _snapshot_if_due(self, image: MetadataImage, end: Offset) -> None:
        if self._log.bytes_since_snapshot > self._view.settings.metadata_log_max_record_bytes_between_snapshots:
            self._log.begin_snapshot(image, end)

    def _lost(self, error: Exception) -> None:
        """Decide no more: there was no room, or another node leads. Go on from what is committed."""
        self._runner = None
        self._loader.go_on_from(self._log.resolved_end)
        if isinstance(error, Refusal):
            self._look()
        else:
            self.quorum.fail(error)

    def _fail(self, error: Exception) -> None:
        self._failed(error)
