"""One group coordinator: the machine of one partition of `__consumer_offsets`, with the timer that wakes it.

Importing the machine takes a while, and a node without groups does without: `groups.py` imports this module when it
needs the first coordinator.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Never

from riverlog.drivers.coordinator import Coordinator
from riverlog.drivers.partition_log import PartitionLog
from riverlog.drivers.replicas import Replicas
from riverlog.groups.batches import decode_facts, encode_facts
from riverlog.groups.commands import GroupsCommand, TopicsChanged, TopicsDeleted, Woken
from riverlog.groups.machine import GroupsMachine
from riverlog.groups.records import GroupFact
from riverlog.metadata.image import MetadataImage
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Clock
from riverlog.model.settings import NodeSettings


class GroupCoordinator:
    """Runs the groups of one partition; `failed` is called when its log fails, and it is to be loaded again."""

    def __init__(
        self,
        name: TopicPartition,
        replicas: Replicas,
        clock: Clock,
        *,
        settings: Callable[[], NodeSettings],
        image: Callable[[], MetadataImage],
        failed: Callable[["GroupCoordinator", Exception], None],
    ) -> None:
        self.name = name
        self.loaded = False
        self._clock = clock
        self._image = image
        self._failed = failed
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0  # its own `when` is not to be had where uvloop calls at once
        log = PartitionLog[GroupFact](name, replicas, clock, encode=encode_facts, decode=decode_facts)
        self._log = log
        self._coordinator: Coordinator[GroupsCommand, GroupFact, Never] = Coordinator(
            new_machine=lambda: GroupsMachine(settings(), image()),
            log=log,
            clock=clock,
            view=lambda machine: None,
            committed=lambda view, records, effects: None,
            failed=self._log_failed,
        )

    @property
    def machine(self) -> GroupsMachine:
        machine = self._coordinator.machine
        assert isinstance(machine, GroupsMachine)
        return machine

    def begin(self) -> bool:
        """Begin at once if nothing was ever written; else it has to be loaded."""
        if not self._log.begun:
            self._coordinator.start()
            self.loaded = True
        return self.loaded

    async def load(self) -> None:
        """Read the log, and learn what happened to topics meanwhile."""
        await self._coordinator.load()
        self.loaded = True
        image = self._image()
        gone = frozenset(name for name in self.machine.state.offsets.topics() if image.topic(name) is None)
        self.topics_changed(gone, gone)

    def submit(self, command: GroupsCommand) -> "asyncio.Future[Any]":
        """Decide now."""
        if not self.loaded:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is reading its log; try again.")
        if self._coordinator.crowded:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many wait for this coordinator; try again.")
        reply = self._coordinator.submit(command)
        self._arm()
        return reply

    def topics_changed(self, changed: frozenset[str], deleted: frozenset[str]) -> None:
        """Let the machine know, if it is there, of topics that are not as they were, and of those that are gone."""
        if self.loaded:
            self._coordinator.submit(TopicsChanged(self._image(), changed))
        if self.loaded and deleted:
            self._coordinator.submit(TopicsDeleted(deleted))
        self._arm()

    def dismiss(self, error: Exception) -> None:
        """Tell those who wait for other members that none will come."""
        self.loaded = False
        self._disarm()
        self._coordinator.dismiss(error)

    async def close(self) -> None:
        self._disarm()
        await self._coordinator.drain()

    def _log_failed(self, error: Exception) -> None:
        self.loaded = False
        self._disarm()
        self._failed(self, error)

    def _arm(self) -> None:
        """Wake the machine when it wants; a timer that is too early only looks again, which is cheaper than to move
        it with every heartbeat."""
        deadline = self.machine.next_deadline() if self.loaded else None
        if deadline is None:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, deadline - self._clock.monotonic())
        if self._timer is None or when < self._timer_at:
            self._disarm()
            self._timer, self._timer_at = loop.call_at(when, self._wake), when

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        deadline = self.machine.next_deadline()
        if deadline is not None and deadline <= self._clock.monotonic():
            self._coordinator.submit(Woken())
        self._arm()
