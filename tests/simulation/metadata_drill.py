"""A node's metadata alone: its log, with snapshots and segments that they replace, loses power and is opened again."""

import asyncio
from copy import copy
from dataclasses import replace
from random import Random
from typing import Final

from riverlog.controller.storage import METADATA_CONFIG
from riverlog.log.checkpoint import read_file
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.topics import DeleteTopics
from riverlog.metadata.image import ConfigResourceType
from riverlog.raft.quorum_state import QUORUM_STATE_FILE, BadQuorumState, decode_election
from riverlog.records.batch import headers
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.support.disk import MemoryDisk
from tests.unit.controller.metadata_node import FOLDER, Node, names, topic

_SEGMENT_BYTES: Final = 400
"""Two topics have room in a segment."""


class MetadataDrill:
    """Topics whose creation was answered are there, deleted ones are not, and settings are as they were changed."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self._answered: list[str] = []
        self._deleted: set[str] = set()
        self._retention: dict[str, str] = {}
        self._created = 0

    def after_crash(self, seed: int) -> "MetadataDrill":
        """Give this drill as it would go on if the power failed now; this one knows nothing of it."""
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        other._answered = list(self._answered)
        other._deleted = set(self._deleted)
        other._retention = dict(self._retention)
        return other

    def expectations(self) -> str:
        """Tell what must be found, to compare drills by."""
        return f"{self._answered} {sorted(self._deleted)} {self._retention}"

    def live(self) -> None:
        """Create topics, with a snapshot now and then that takes the place of several segments and of the last one."""
        asyncio.run(self._live())

    async def _live(self) -> None:
        node = Node(self.disk, config=replace(METADATA_CONFIG, segment_bytes=_SEGMENT_BYTES))
        await node.register()
        for _ in range(2):
            for _ in range(3):
                await self._create(node)
            node.log.begin_snapshot(node.view.image, node.log.end_offset)
            await self._create(node)  # while it is written
            if writing := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(writing)
        await self._alter(node, self._answered[0])
        await self._delete(node, self._answered[-1])
        await node.controller.close()

    async def _create(self, node: Node) -> None:
        name = f"topic{self._created:02}"
        self._created += 1
        await node.create(name)
        self._answered.append(name)

    async def _alter(self, node: Node, name: str) -> None:
        change = ConfigChange("retention.ms", ConfigOperation.SET, "7")
        await node.controller.submit(AlterConfigs((ResourceChanges(ConfigResourceType.TOPIC, name, (change,)),)))
        self._retention[name] = "7"

    async def _delete(self, node: Node, name: str) -> None:
        self._answered.remove(name)
        await node.controller.submit(DeleteTopics((topic(name).id,)))
        self._deleted.add(name)

    def aftermath(self) -> list[str]:
        """Open what was left, go on, and lose power again."""
        wrong = asyncio.run(self._look(goes_on=True))
        self.disk.crash()
        return wrong or asyncio.run(self._look(goes_on=False))

    def _forgotten_vote(self) -> list[str]:
        """Return what is wrong if the log knows of an epoch that the own vote does not know of."""
        saved = read_file(self.disk, f"{FOLDER}/{QUORUM_STATE_FILE}")
        names = self.disk.list(FOLDER) if self.disk.exists(FOLDER) else []
        logs = [read_file(self.disk, f"{FOLDER}/{name}") or b"" for name in names if name.endswith(".log")]
        newest = max((header.leader_epoch for log in logs for _, header in headers(memoryview(log))), default=0)
        try:
            voted = 0 if saved is None else decode_election(saved).election.epoch
        except BadQuorumState as error:
            return [f"the vote cannot be read: {error}"]
        return [f"the log has records of epoch {newest}, and the vote is for {voted}"] if newest > voted else []

    async def _look(self, *, goes_on: bool) -> list[str]:
        if wrong := self._forgotten_vote():
            return wrong
        node = Node(self.disk)
        found = names(node.view.image)
        if [name for name in found if name in self._answered] != self._answered:
            return [f"the metadata holds {found}; {self._answered} were created"]
        if back := self._deleted.intersection(found):
            return [f"the metadata holds {back} again"]
        for name, value in self._retention.items():
            if (held := node.view.image.topic_overrides(name).get("retention.ms")) != value:
                return [f"{name} has retention.ms={held}; {value} was answered"]
        if goes_on:
            await node.register()
            await self._create(node)
        return []
