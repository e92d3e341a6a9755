"""Brokers and controllers as records, and back: what a registration says of a node, and what changes it."""

from dataclasses import replace

from riverlog.metadata.image import BrokerImage, ControllerImage, RegisteredEndpoint
from riverlog.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from riverlog.model.ids import NodeId


def broker_of(record: RegisterBrokerRecord) -> BrokerImage:
    """Return the broker that has registered."""
    return BrokerImage(
        id=NodeId(record.broker_id),
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features={each.name: (each.min_supported_version, each.max_supported_version) for each in record.features},
        rack=record.rack,
        fenced=record.fenced,
        log_dirs=tuple(record.log_dirs),
        in_controlled_shutdown=record.in_controlled_shutdown,
        cordoned_log_dirs=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )


def broker_after(broker: BrokerImage, record: BrokerRegistrationChangeRecord) -> BrokerImage:
    """Return the broker with what the record changes."""
    assert record.broker_epoch == broker.epoch, f"{record} is of another start of broker {broker.id}: {broker.epoch}"
    cordoned = record.cordoned_log_dirs
    return replace(
        broker,
        fenced=record.fenced > 0 or (broker.fenced and record.fenced == 0),
        log_dirs=tuple(record.log_dirs) or broker.log_dirs,
        in_controlled_shutdown=record.in_controlled_shutdown > 0 or broker.in_controlled_shutdown,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )


def broker_record(broker: BrokerImage) -> RegisterBrokerRecord:
    """Return the record of a broker as it is now."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(BrokerEndpoint(*each) for each in broker.endpoints),
        features=tuple(BrokerFeature(name, *levels) for name, levels in broker.features.items()),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs,
    )


def controller_of(record: RegisterControllerRecord) -> ControllerImage:
    """Return the controller that has registered."""
    return ControllerImage(
        id=NodeId(record.controller_id),
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features={each.name: (each.min_supported_version, each.max_supported_version) for each in record.features},
    )


def controller_record(controller: ControllerImage) -> RegisterControllerRecord:
    """Return the record of a controller as it is now."""
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        end_points=tuple(BrokerEndpoint(*each) for each in controller.endpoints),
        features=tuple(BrokerFeature(name, *levels) for name, levels in controller.features.items()),
    )


def _endpoints(endpoints: tuple[BrokerEndpoint, ...]) -> tuple[RegisteredEndpoint, ...]:
    return tuple(RegisteredEndpoint(each.name, each.host, each.port, each.security_protocol) for each in endpoints)
