"""The metadata machine: commands in, facts and replies out.

All its state is one `MetadataImage` in the making, which records alone change. It holds no soft state, has no deadlines
and causes no effects: whoever follows the cluster's metadata watches the records as they are committed.
"""

from collections.abc import Iterable
from typing import Never, assert_never

from riverlog.metadata.commands.brokers import RegisterBroker, ReportDirectories, register_broker, report_directories
from riverlog.metadata.commands.configs import AlterConfigs, alter_configs
from riverlog.metadata.commands.partitions import CreatePartitions, create_partitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds, allocate_producer_ids
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicDefaults, create_topics, delete_topics
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import MetadataRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket

MetadataCommand = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | RegisterBroker
    | ReportDirectories
    | AllocateProducerIds
)


class MetadataMachine:
    """Decides about the cluster's topics, partitions, settings, brokers and producer ids."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._draft = MetadataDraft(MetadataImage())
        self._defaults = defaults

    @property
    def image(self) -> MetadataImage:
        """Return what all records so far come to."""
        return self._draft.image()

    def decide(self, command: MetadataCommand, ticket: Ticket, now: Moment) -> Decision[MetadataRecord, Never]:
        """Name what follows from the command; change nothing."""
        records, response = self._decide(command)
        return Decision(records=tuple(records), replies=(Reply(ticket, response),))

    def apply(self, record: MetadataRecord) -> None:
        """Remember one fact."""
        self._draft.apply(record)

    def withdraw(self, records: tuple[MetadataRecord, ...], now: Moment) -> Decision[MetadataRecord, Never]:
        """Go on without facts that will not be written: nothing else was noted."""
        return Decision()

    def snapshot(self) -> Iterable[MetadataRecord]:
        """Return records which make an empty machine equal to this one."""
        return snapshot_records(self.image)

    def next_deadline(self) -> Instant | None:
        return None

    def _decide(self, command: MetadataCommand) -> tuple[list[MetadataRecord], object]:
        match command:
            case CreateTopics():
                return create_topics(self.image, command, self._defaults)
            case DeleteTopics():
                return delete_topics(self.image, command)
            case CreatePartitions():
                return create_partitions(self.image, command)
            case AlterConfigs():
                return alter_configs(self.image, command, self._defaults.layers)
            case RegisterBroker():
                return register_broker(self.image, command)
            case ReportDirectories():
                return report_directories(self.image, command)
            case AllocateProducerIds():
                return allocate_producer_ids(self.image, command)
            case _:
                assert_never(command)
