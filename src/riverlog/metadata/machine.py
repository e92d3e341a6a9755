"""The metadata machine: commands in, facts and replies out.

What it remembers is one `MetadataImage` in the making, which records alone change. Who was heard of, and what takes
several decisions, is soft state of the brokers' lifecycle: it begins when this controller becomes active, and is lost
with the machine. It causes no effects: whoever follows the metadata watches the records as they are committed.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Never

from riverlog.metadata.commands.configs import AlterConfigs, alter_configs
from riverlog.metadata.commands.only_broker import (
    RegisterOnlyBroker,
    ReportDirectories,
    register_only_broker,
    report_directories,
)
from riverlog.metadata.commands.partitions import CreatePartitions, create_partitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds, allocate_producer_ids
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicDefaults, create_topics, delete_topics
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.placement import BrokerLoad
from riverlog.metadata.records import MetadataRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.ids import NodeId
from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket

if TYPE_CHECKING:
    from riverlog.metadata.broker_index import BrokerIndex
    from riverlog.metadata.cluster_decisions import ClusterDecisions, MetadataCommand


class MetadataMachine:
    """Decides about the cluster's topics, partitions, settings, brokers and producer ids."""

    def __init__(
        self, defaults: TopicDefaults, image: MetadataImage | None = None, index: "BrokerIndex | None" = None
    ) -> None:
        """Begin with what all records so far came to, and with its index, if there is one: it is the machine's then."""
        self._draft = MetadataDraft(image or MetadataImage())
        self._draft.index = index
        self._defaults = defaults
        self._cluster: ClusterDecisions | None = None
        """What more is decided in a cluster; a node that is alone does without."""

    @property
    def image(self) -> MetadataImage:
        """Return what all records so far come to."""
        return self._draft.image()

    @property
    def index(self) -> "BrokerIndex":
        """Return what each broker has of the partitions; from the first time on, each record keeps it up to date.

        A controller that may become active has it follow what is committed, and begins with it: to make it of a million
        partitions takes a second. A node that is alone needs none.
        """
        if self._draft.index is None:
            from riverlog.metadata.broker_index import BrokerIndex  # a node that is alone starts without it

            self._draft.index = BrokerIndex.of(self.image)
        return self._draft.index

    def decide(self, command: "MetadataCommand", ticket: Ticket, now: Moment) -> Decision[MetadataRecord, Never]:
        """Name what follows from the command; change nothing."""
        records, response = self._decide(command, now.instant)
        return Decision(records=tuple(records), replies=(Reply(ticket, response),))

    def apply(self, record: MetadataRecord) -> None:
        """Remember one fact."""
        self._draft.apply(record)

    def withdraw(self, records: tuple[MetadataRecord, ...], now: Moment) -> Decision[MetadataRecord, Never]:
        """Go on without facts that will not be written: what was under way begins anew, where this node is active."""
        if self._cluster is not None and self._cluster.lifecycle.is_active:
            self._cluster.lifecycle.begin_anew(now.instant)
        return Decision()

    def snapshot(self) -> Iterable[MetadataRecord]:
        """Return records which make an empty machine equal to this one."""
        return snapshot_records(self.image)

    def next_deadline(self) -> Instant | None:
        """Return when to be woken: when a session may end, or at once while a walk over partitions is under way."""
        return None if self._cluster is None else self._cluster.lifecycle.next_deadline()

    def _decide(self, command: "MetadataCommand", now: Instant) -> tuple[list[MetadataRecord], object]:
        match command:
            case CreateTopics():
                return create_topics(self.image, command, self._defaults, self._load())
            case DeleteTopics():
                return delete_topics(self.image, command)
            case CreatePartitions():
                return create_partitions(self.image, command, self._load())
            case AlterConfigs():
                return self._alter_configs(command)
            case RegisterOnlyBroker():
                if self._cluster is not None:
                    self._cluster.lifecycle.forget(command.node_id)
                return register_only_broker(self.image, command)
            case ReportDirectories():
                return report_directories(self.image, command)
            case AllocateProducerIds():
                return allocate_producer_ids(self.image, command)
            case _:
                return self._in_cluster().decide(command, now)

    def _alter_configs(self, command: AlterConfigs) -> tuple[list[MetadataRecord], object]:
        """Change settings, and what follows for leaders."""
        records, response = alter_configs(self.image, command, self._defaults.layers)
        if self._cluster is not None or self.image.keeps_eligible:
            records += self._in_cluster().configured(records)
        return records, response

    def _load(self) -> BrokerLoad:
        """Return how much each broker leads; on a node that is alone nobody need know."""
        led = dict(self.index.led) if len(self.image.brokers) > 1 else {}
        leaving = frozenset[NodeId]() if self._cluster is None else frozenset(self._cluster.lifecycle.sweeps.leaving)
        return BrokerLoad(led, leaving, self._defaults.replicas_max)

    def _in_cluster(self) -> "ClusterDecisions":
        if self._cluster is None:
            from riverlog.metadata.cluster_decisions import ClusterDecisions  # a node that is alone starts without it

            self._cluster = ClusterDecisions(lambda: self.image, lambda: self.index, self._defaults)
        return self._cluster
