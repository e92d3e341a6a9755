"""Brokers and controllers as records, and back."""

from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.metadata.draft import after
from riverlog.metadata.image import BrokerImage, ControllerImage, MetadataImage, RegisteredEndpoint
from riverlog.metadata.node_records import broker_after, broker_of, broker_record, controller_of, controller_record
from riverlog.metadata.records import BrokerRegistrationChangeRecord, FenceBrokerRecord, UnfenceBrokerRecord
from riverlog.model.ids import NodeId

ONE, TWO = UUID(int=1), UUID(int=2)
BROKER = BrokerImage(
    id=NodeId(3),
    epoch=17,
    incarnation_id=ONE,
    endpoints=(RegisteredEndpoint("SECURE", "host", 9093, 3), RegisteredEndpoint("PLAINTEXT", "host", 9092)),
    features={"metadata.version": (7, 30)},
    rack="a",
    fenced=False,
    log_dirs=(ONE, TWO),
    in_controlled_shutdown=True,
    cordoned_log_dirs=(TWO,),
)
CONTROLLER = ControllerImage(
    NodeId(100), TWO, (RegisteredEndpoint("CONTROLLER", "c", 9093),), {"kraft.version": (0, 1)}
)


def test_a_broker_comes_back_from_its_record() -> None:
    assert broker_of(broker_record(BROKER)) == BROKER
    unsaid = replace(BROKER, cordoned_log_dirs=None, in_controlled_shutdown=False)
    assert broker_of(broker_record(unsaid)) == unsaid


def test_a_controller_comes_back_from_its_record() -> None:
    assert controller_of(controller_record(CONTROLLER)) == CONTROLLER
    assert after(MetadataImage(), [controller_record(CONTROLLER)]).controllers == {NodeId(100): CONTROLLER}


def test_a_change_touches_what_it_names() -> None:
    fenced = broker_after(BROKER, BrokerRegistrationChangeRecord(3, 17, fenced=1))
    assert fenced == replace(BROKER, fenced=True)
    assert broker_after(fenced, BrokerRegistrationChangeRecord(3, 17, fenced=-1)) == BROKER
    assert broker_after(fenced, BrokerRegistrationChangeRecord(3, 17)) == fenced
    calm = replace(BROKER, in_controlled_shutdown=False)
    assert broker_after(calm, BrokerRegistrationChangeRecord(3, 17, in_controlled_shutdown=1)) == BROKER
    assert broker_after(BROKER, BrokerRegistrationChangeRecord(3, 17, log_dirs=(TWO,))).log_dirs == (TWO,)
    assert broker_after(BROKER, BrokerRegistrationChangeRecord(3, 17, cordoned_log_dirs=())).cordoned_log_dirs == ()
    with pytest.raises(AssertionError, match="another start"):
        broker_after(BROKER, BrokerRegistrationChangeRecord(3, 16, fenced=1))


def test_only_who_is_neither_fenced_nor_stopping_is_active() -> None:
    assert not BROKER.is_active
    assert replace(BROKER, in_controlled_shutdown=False).is_active
    assert not replace(BROKER, in_controlled_shutdown=False, fenced=True).is_active


def test_old_logs_fence_with_records_of_their_own() -> None:
    image = after(MetadataImage(), [broker_record(BROKER), FenceBrokerRecord(3, 17)])
    assert image.brokers[NodeId(3)].fenced
    assert not after(image, [UnfenceBrokerRecord(3, 17)]).brokers[NodeId(3)].fenced
