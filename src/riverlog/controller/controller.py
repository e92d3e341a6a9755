"""The controller: decides about the cluster's metadata, and publishes what is committed.

It runs the metadata machine on the metadata log. What a command came to is in the view before whoever asked gets the
reply.
"""

from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from riverlog.controller.log import MetadataLog
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.view import MetadataView
from riverlog.metadata.commands.topics import TopicDefaults
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset
from riverlog.model.machine import Command
from riverlog.model.ports import Clock
from riverlog.runner import Runner

Reply = TypeVar("Reply")


class Controller:
    """Runs the metadata machine."""

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
        self._failed = failed
        settings = view.settings
        defaults = TopicDefaults(settings.num_partitions, settings.default_replication_factor, settings.layers)
        self._runner: Runner[MetadataMachine, MetadataRecord, Never] = Runner(
            new_machine=lambda: MetadataMachine(defaults),
            log=log,
            clock=clock,
            view=lambda machine: machine.image,
            committed=self._publish,
            failed=self._log_failed,
        )

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the metadata's last record."""
        return self._log.end_offset

    @property
    def quorum(self) -> MetadataQuorum:
        """Return who votes on the metadata, who leads, and what is committed."""
        return self._log.quorum

    def start(self) -> None:
        """Read the metadata from the log, and lead it from here on; BadMetadata where it is damaged."""
        self._runner.start()
        self._log.lead()
        self._view.begin(self._runner.machine.image)

    def submit(self, command: Command[MetadataRecord, Reply]) -> Awaitable[Reply]:
        """Decide now; the reply comes once what it says is on the medium. Refusal where that failed."""
        return self._runner.submit(command)

    async def close(self) -> None:
        """Finish what is under way."""
        await self._runner.drain()
        await self._log.close()

    def _publish(self, image: MetadataImage, records: tuple[MetadataRecord, ...], _effects: tuple[Never, ...]) -> None:
        self._view.publish(image, records)
        bytes_max = self._view.settings.metadata_log_max_record_bytes_between_snapshots
        if self._runner.settled and self._log.bytes_since_snapshot > bytes_max:
            self._log.begin_snapshot(image)

    def _log_failed(self, error: Exception) -> None:
        """Begin again from the log if it can go on; end the node if it cannot."""
        if isinstance(error, Refusal):
            try:
                return self._runner.start()
            except Exception as worse:
                error = worse
        return self._failed(error)
