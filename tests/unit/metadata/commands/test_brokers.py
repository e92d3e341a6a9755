"""What a broker must say of itself to be registered."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.metadata.commands.brokers import RegisterBroker, check_registration, registration_record
from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage, RegisteredEndpoint
from riverlog.metadata.records import FeatureLevelRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId

COMMAND = RegisterBroker(
    NodeId(1),
    UUID(int=1),
    (RegisteredEndpoint("PLAINTEXT", "b1", 9092, 0),),
    {"metadata.version": (7, 30)},
    None,
    (UUID(int=1001),),
    next_offset=40,
)
IMAGE = after(MetadataImage(), [FeatureLevelRecord("metadata.version", 30)])


def test_a_new_process_is_fenced_and_has_the_next_offset_for_its_epoch() -> None:
    check_registration(IMAGE, COMMAND)
    record = registration_record(COMMAND, None)
    assert (record.broker_epoch, record.fenced, record.in_controlled_shutdown) == (40, True, False)


def test_the_same_process_stays_what_it_is() -> None:
    broker = after(IMAGE, [replace(registration_record(COMMAND, None), fenced=False)]).brokers[NodeId(1)]
    record = registration_record(replace(COMMAND, rack="b", next_offset=50), broker)
    assert (record.broker_epoch, record.fenced, record.rack) == (40, False, "b")
    record = registration_record(replace(COMMAND, incarnation_id=UUID(int=2), next_offset=50), broker)
    assert (record.broker_epoch, record.fenced) == (50, True)


@pytest.mark.parametrize(
    ("level", "kraft_version", "features", "code"),
    [
        (1, 0, {"x": (0, 1)}, None),
        (1, 0, {}, ErrorCode.UNSUPPORTED_VERSION),
        (2, 0, {"x": (0, 1)}, ErrorCode.UNSUPPORTED_VERSION),
        (0, 0, {"x": (0, 1)}, None),
        (0, 0, {"x": (1, 1)}, ErrorCode.UNSUPPORTED_VERSION),
        (0, 1, {}, ErrorCode.UNSUPPORTED_VERSION),
        (0, 1, {"kraft.version": (0, 1)}, None),
    ],
)
def test_each_level_of_the_cluster_is_one_that_the_broker_knows(
    level: int, kraft_version: int, features: Mapping[str, tuple[int, int]], code: ErrorCode | None
) -> None:
    image = after(IMAGE, [FeatureLevelRecord("x", level)])
    command = replace(COMMAND, features={**COMMAND.features, **features}, kraft_version=kraft_version)
    if code is None:
        check_registration(image, command)
        return
    with pytest.raises(Refusal) as refused:
        check_registration(image, command)
    assert refused.value.code is code
