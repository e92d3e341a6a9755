"""What a cluster of brokers can ask of the metadata machine, and a node that is alone does not.

It is imported when the first such command comes: a node that is alone starts without it.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.broker_lifecycle import BrokerLifecycle
from riverlog.metadata.commands.brokers import RegisterBroker, UnregisterBroker
from riverlog.metadata.commands.configs import AlterConfigs
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
from riverlog.metadata.commands.only_broker import RegisterOnlyBroker, ReportDirectories
from riverlog.metadata.commands.partitions import CreatePartitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.metadata.commands.reassignments import (
    AlterReassignments,
    ListReassignments,
    alter_reassignments,
    reassignments,
)
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicDefaults
from riverlog.metadata.eligible_leaders import forgotten_eligible
from riverlog.metadata.features import UNCLEAN_ELECTION
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.leader_rules import TopicRules
from riverlog.metadata.records import ConfigRecord, MetadataRecord
from riverlog.model.machine import Instant

LivenessCommand = (
    RegisterBroker | UnregisterBroker | BecomeActive | BrokerHeartbeat | BrokerUnreachable | ExcuseSilence | Woken
)
"""Commands about brokers: what was heard of them before counts too."""

PartitionCommand = AlterPartitions | ElectLeaders | AlterReassignments | ListReassignments | AssignReplicas
"""Commands about who has partitions and who leads them."""

ClusterCommand = LivenessCommand | PartitionCommand | RegisterController | UpdateFeatures

AnyNodesCommand = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | RegisterOnlyBroker
    | ReportDirectories
    | AllocateProducerIds
)
"""What a node that is alone is asked too."""

MetadataCommand = AnyNodesCommand | ClusterCommand


class ClusterDecisions:
    """Decides about brokers, and what follows from them; `image` and `index` are the machine's."""

    def __init__(
        self, image: Callable[[], MetadataImage], index: Callable[[], BrokerIndex], defaults: TopicDefaults
    ) -> None:
        self.lifecycle = BrokerLifecycle(image, index, defaults.layers)
        self._image = image
        self._index = index
        self._defaults = defaults

    def decide(self, command: ClusterCommand, now: Instant) -> tuple[list[MetadataRecord], object]:
        """Name what follows from the command."""
        match command:
            case RegisterController():
                return register_controller(self._image(), command)
            case UpdateFeatures():
                return update_features(self._image(), command, self._index())
            case AlterPartitions() | ElectLeaders() | AlterReassignments() | ListReassignments() | AssignReplicas():
                return self._decide_partitions(command)
            case _:
                return self._decide_liveness(command, now)

    def configured(self, records: Sequence[MetadataRecord]) -> list[MetadataRecord]:
        """Return what follows for leaders from changed settings."""
        if any(isinstance(each, ConfigRecord) and each.name == UNCLEAN_ELECTION for each in records):
            self.lifecycle.seek_leaders()
        return forgotten_eligible(self._image(), self._index(), records) if self._image().keeps_eligible else []

    def _decide_partitions(self, command: PartitionCommand) -> tuple[list[MetadataRecord], object]:
        image, sweeps = self._image(), self.lifecycle.sweeps
        rules, present = TopicRules(image, self._defaults.layers), sweeps.present(image)
        match command:
            case AlterPartitions():
                return alter_partitions(image, command, rules, present)
            case ElectLeaders():
                return elect_leaders(image, command, self._index(), rules, present)
            case AlterReassignments():
                return alter_reassignments(image, command, rules, present, self._defaults.replicas_max)
            case ListReassignments():
                return [], reassignments(image, self._index(), command.partitions)
            case AssignReplicas():
                without = sweeps.present(image, gone=(command.broker_id,))
                return assign_replicas(image, command, rules, present, without)
            case _:
                assert_never(command)

    def _decide_liveness(self, command: LivenessCommand, now: Instant) -> tuple[list[MetadataRecord], object]:
        lifecycle = self.lifecycle
        match command:
            case RegisterBroker():
                return lifecycle.register(command, now)
            case UnregisterBroker():
                return lifecycle.unregister(command), None
            case BecomeActive():
                return lifecycle.become_active(command, now), None
            case BrokerHeartbeat():
                return lifecycle.heartbeat(command, now)
            case BrokerUnreachable():
                return lifecycle.unreachable(command), None
            case ExcuseSilence():
                lifecycle.excuse(command)
                return [], None
            case Woken():
                return lifecycle.woken(command, now), None
            case _:
                assert_never(command)
