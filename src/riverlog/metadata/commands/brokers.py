"""Brokers joining the cluster, and leaving it for good."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.commands.only_broker import BrokerRegistered
from riverlog.metadata.features import KRAFT_VERSION, METADATA_VERSION
from riverlog.metadata.image import BrokerImage, MetadataImage, RegisteredEndpoint
from riverlog.metadata.limits import HOST_CHARACTERS_MAX, LISTENERS_MAX, RESERVED_DIRECTORIES
from riverlog.metadata.records import BrokerEndpoint, BrokerFeature, MetadataRecord, RegisterBrokerRecord
from riverlog.model.endpoints import PORT_MAX
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class RegisterBroker(Command[MetadataRecord, BrokerRegistered]):
    """A broker's process has started, or says something else of itself than before."""

    node_id: NodeId
    incarnation_id: UUID
    """New with each start of the process."""
    endpoints: tuple[RegisteredEndpoint, ...]
    features: Mapping[str, tuple[int, int]]
    """The levels of each feature that the broker can run with."""
    rack: str | None
    log_dirs: tuple[UUID, ...]
    """The directories that it has now, those that are away left out."""
    next_offset: int
    """The offset that the first record of this decision gets."""
    previous_epoch: int = -1
    """The epoch in which it stopped, if it stopped cleanly."""
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    kraft_version: int = 0
    """The level of kraft.version, which stands in no metadata record."""


@dataclass(frozen=True, slots=True)
class UnregisterBroker(Command[MetadataRecord, None]):
    """A broker is gone for good."""

    node_id: NodeId


def registration_record(command: RegisterBroker, before: BrokerImage | None) -> RegisterBrokerRecord:
    """Return the record of a registration: fenced until it has caught up, unless the same process amends its own."""
    amends = before if before is not None and before.incarnation_id == command.incarnation_id else None
    return RegisterBrokerRecord(
        broker_id=command.node_id,
        incarnation_id=command.incarnation_id,
        broker_epoch=command.next_offset if amends is None else amends.epoch,
        end_points=tuple(BrokerEndpoint(*each) for each in command.endpoints),
        features=tuple(BrokerFeature(name, *levels) for name, levels in command.features.items()),
        rack=command.rack,
        fenced=True if amends is None else amends.fenced,
        in_controlled_shutdown=False if amends is None else amends.in_controlled_shutdown,
        log_dirs=command.log_dirs,
        cordoned_log_dirs=command.cordoned_log_dirs,
    )


def check_registration(image: MetadataImage, command: RegisterBroker) -> None:
    """Refuse a broker whose directories or features do not fit into the cluster."""
    check_endpoints(f"Broker {command.node_id}", command.endpoints)
    _check_directories(image, command)
    if METADATA_VERSION not in command.features:
        raise Refusal(
            ErrorCode.INVALID_REGISTRATION,
            f"Broker {command.node_id} does not say which levels of metadata.version it supports.",
        )
    finalized = {**image.features, KRAFT_VERSION: command.kraft_version}
    for name in {*command.features, *(name for name, level in finalized.items() if level > 0)}:
        level = finalized.get(name, 0)
        lowest, highest = command.features.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Broker {command.node_id} supports {name} {lowest} to {highest}, and the cluster has it at {level}; "
                f"start it in a version that knows that level, or change the level.",
            )


def check_endpoints(who: str, endpoints: Sequence[RegisteredEndpoint]) -> None:
    """Refuse a node that nobody could reach, or that names more listeners than a node has."""
    names = [each.listener for each in endpoints]
    if not 0 < len(endpoints) <= LISTENERS_MAX:
        problem = f"names {len(endpoints)} listeners"
    elif len(set(names)) < len(names):
        problem = "names a listener twice"
    else:
        bad = [each for each in endpoints if not _is_reachable(each)]
        if not bad:
            return
        problem = f"cannot be reached at {bad[0].host[:HOST_CHARACTERS_MAX]!r}, port {bad[0].port}"
    raise Refusal(ErrorCode.INVALID_REGISTRATION, f"{who} {problem}.")


def _is_reachable(endpoint: RegisteredEndpoint) -> bool:
    names = (endpoint.listener, endpoint.host)
    return all(0 < len(each) <= HOST_CHARACTERS_MAX for each in names) and 0 < endpoint.port <= PORT_MAX


def _check_directories(image: MetadataImage, command: RegisterBroker) -> None:
    directories = command.log_dirs
    owners = {directory: broker.id for broker in image.brokers.values() for directory in broker.log_dirs}
    if not directories:
        problem = "names no log directory"
    elif any(each.int < RESERVED_DIRECTORIES for each in directories):
        problem = "names a log directory by an id that stands for something else"
    elif len(set(directories)) < len(directories):
        problem = "names a log directory twice"
    else:
        foreign = [each for each in directories if owners.get(each, command.node_id) != command.node_id]
        if not foreign:
            return
        problem = f"names the log directory {foreign[0]}, which is registered for broker {owners[foreign[0]]}"
    raise Refusal(ErrorCode.INVALID_REGISTRATION, f"Broker {command.node_id} {problem}.")
