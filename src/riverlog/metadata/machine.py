"""The metadata machine: commands in, facts and replies out.

What it remembers is one `MetadataImage` in the making, which records alone change. Who was heard of, and what takes
several decisions, is soft state of the brokers' lifecycle: it begins when this controller becomes active, and is lost
with the machine. It causes no effects: whoever follows the metadata watches the records as they are committed.
"""

from collections.abc import Iterable
from typing import Never, assert_never

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.broker_lifecycle import BrokerLifecycle
from riverlog.metadata.commands.brokers import RegisterBroker, UnregisterBroker
from riverlog.metadata.commands.configs import AlterConfigs, alter_configs
from riverlog.metadata.commands.controllers import RegisterController, register_controller
from riverlog.metadata.commands.directories import AssignReplicas, assign_replicas
from riverlog.metadata.commands.features import UpdateFeatures, update_features
from riverlog.metadata.commands.in_sync import AlterPartitions, alter_partitions
from riverlog.metadata.commands.leaders import ElectLeaders, elect_leaders
from riverlog.metadata.commands.liveness import (
    BecomeActive,
    BrokerHeartbeat,
    BrokerUnreachable,
    ExcuseSilence,
    Woken,
)
from riverlog.metadata.commands.only_broker import (
    RegisterOnlyBroker,
    ReportDirectories,
    register_only_broker,
    report_directories,
)
from riverlog.metadata.commands.partitions import CreatePartitions, create_partitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds, allocate_producer_ids
from riverlog.metadata.commands.reassignments import AlterReassignments, alter_reassignments
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicDefaults, create_topics, delete_topics
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.eligible_leaders import forgotten_eligible
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.leader_rules import UNCLEAN_ELECTION, TopicRules, keeps_eligible
from riverlog.metadata.placement import BrokerLoad
from riverlog.metadata.records import ConfigRecord, MetadataRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket

PartitionCommand = AlterPartitions | ElectLeaders | AlterReassignments | AssignReplicas
"""Commands about who has partitions and who leads them."""

LivenessCommand = (
    RegisterBroker
    | UnregisterBroker
    | RegisterOnlyBroker
    | BecomeActive
    | BrokerHeartbeat
    | BrokerUnreachable
    | ExcuseSilence
    | Woken
)
"""Commands about brokers: what was heard of them before counts too."""

MetadataCommand = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | ReportDirectories
    | AllocateProducerIds
    | UpdateFeatures
    | RegisterController
    | PartitionCommand
    | LivenessCommand
)


class MetadataMachine:
    """Decides about the cluster's topics, partitions, settings, brokers and producer ids."""

    def __init__(
        self, defaults: TopicDefaults, image: MetadataImage | None = None, index: BrokerIndex | None = None
    ) -> None:
        """Begin with what all records so far came to, and with its index, if there is one: it is the machine's then."""
        self._draft = MetadataDraft(image or MetadataImage())
        self._draft.index = index
        self._defaults = defaults
        self._lifecycle = BrokerLifecycle(lambda: self.image, lambda: self.index, defaults.layers)

    @property
    def image(self) -> MetadataImage:
        """Return what all records so far come to."""
        return self._draft.image()

    @property
    def index(self) -> BrokerIndex:
        """Return what each broker has of the partitions; from the first time on, each record keeps it up to date.

        A controller that may become active has it follow what is committed, and begins with it: to make it of a million
        partitions takes a second. A node that is alone needs none.
        """
        if self._draft.index is None:
            self._draft.index = BrokerIndex.of(self.image)
        return self._draft.index

    def decide(self, command: MetadataCommand, ticket: Ticket, now: Moment) -> Decision[MetadataRecord, Never]:
        """Name what follows from the command; change nothing."""
        records, response = self._decide(command, now.instant)
        return Decision(records=tuple(records), replies=(Reply(ticket, response),))

    def apply(self, record: MetadataRecord) -> None:
        """Remember one fact."""
        self._draft.apply(record)

    def withdraw(self, records: tuple[MetadataRecord, ...], now: Moment) -> Decision[MetadataRecord, Never]:
        """Go on without facts that will not be written: what was under way begins anew, where this node is active."""
        if self._lifecycle.is_active:
            self._lifecycle.begin_anew(now.instant)
        return Decision()

    def snapshot(self) -> Iterable[MetadataRecord]:
        """Return records which make an empty machine equal to this one."""
        return snapshot_records(self.image)

    def next_deadline(self) -> Instant | None:
        """Return when to be woken: when a session may end, or at once while a walk over partitions is under way."""
        return self._lifecycle.next_deadline()

    def _load(self) -> BrokerLoad:
        """Return how much each broker leads; on a node that is alone nobody need know."""
        led = dict(self.index.led) if len(self.image.brokers) > 1 else {}
        return BrokerLoad(led, frozenset(self._lifecycle.sweeps.leaving))

    def _decide(self, command: MetadataCommand, now: Instant) -> tuple[list[MetadataRecord], object]:
        match command:
            case CreateTopics():
                return create_topics(self.image, command, self._defaults, self._load())
            case DeleteTopics():
                return delete_topics(self.image, command)
            case CreatePartitions():
                return create_partitions(self.image, command, self._load())
            case AlterConfigs():
                return self._alter_configs(command)
            case RegisterController():
                return register_controller(self.image, command)
            case ReportDirectories():
                return report_directories(self.image, command)
            case AllocateProducerIds():
                return allocate_producer_ids(self.image, command)
            case UpdateFeatures():
                return update_features(self.image, command, self.index)
            case AlterPartitions() | ElectLeaders() | AlterReassignments() | AssignReplicas():
                return self._decide_partitions(command)
            case _:
                return self._decide_liveness(command, now)

    def _alter_configs(self, command: AlterConfigs) -> tuple[list[MetadataRecord], object]:
        """Change settings, and what follows for leaders."""
        records, response = alter_configs(self.image, command, self._defaults.layers)
        if keeps_eligible(self.image):
            records += forgotten_eligible(self.image, self.index, records)
        if any(isinstance(each, ConfigRecord) and each.name == UNCLEAN_ELECTION for each in records):
            self._lifecycle.seek_leaders()
        return records, response

    def _decide_partitions(self, command: PartitionCommand) -> tuple[list[MetadataRecord], object]:
        image, sweeps = self.image, self._lifecycle.sweeps
        rules, present = TopicRules(image, self._defaults.layers), sweeps.present(image)
        match command:
            case AlterPartitions():
                return alter_partitions(image, command, rules, present)
            case ElectLeaders():
                return elect_leaders(image, command, self.index, rules, present)
            case AlterReassignments():
                return alter_reassignments(image, command, rules, present)
            case AssignReplicas():
                without = sweeps.present(image, gone=(command.broker_id,))
                return assign_replicas(image, command, rules, present, without)
            case _:
                assert_never(command)

    def _decide_liveness(self, command: LivenessCommand, now: Instant) -> tuple[list[MetadataRecord], object]:
        match command:
            case RegisterBroker():
                return self._lifecycle.register(command, now)
            case UnregisterBroker():
                return self._lifecycle.unregister(command), None
            case RegisterOnlyBroker():
                self._lifecycle.forget(command.node_id)
                return register_only_broker(self.image, command)
            case BecomeActive():
                return self._lifecycle.become_active(command, now), None
            case BrokerHeartbeat():
                return self._lifecycle.heartbeat(command, now)
            case BrokerUnreachable():
                return self._lifecycle.unreachable(command), None
            case ExcuseSilence():
                self._lifecycle.excuse(command)
                return [], None
            case Woken():
                return self._lifecycle.woken(command, now), None
            case _:
                assert_never(command)
