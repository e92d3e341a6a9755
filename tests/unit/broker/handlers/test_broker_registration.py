"""Brokers that join, and those that may not."""

from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.metadata.features import NODE_FEATURES
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.broker_registration import BrokerRegistrationRequest
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature
from tests.support.clusters import CLUSTER_ID, controller_line
from tests.support.virtual_time import run

REQUEST = BrokerRegistrationRequest(
    broker_id=6,
    cluster_id=CLUSTER_ID,
    incarnation_id=UUID(int=600),
    listeners=[RegisteredListener("PLAINTEXT", "n6", 9092, 0)],
    features=[SupportedFeature(name, *levels) for name, levels in NODE_FEATURES.items()],
    rack="r1",
    log_dirs=[UUID(int=601)],
)


def test_a_broker_is_registered_fenced_in_an_epoch_of_its_own() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            before = cluster.nodes[1].controller.end_offset
            response = await line.ask(ApiKey.BROKER_REGISTRATION, 4, REQUEST)
            assert (response.error_code, response.broker_epoch) == (ErrorCode.NONE, before)
            broker = cluster.nodes[1].controller.image.brokers[6]
            assert (broker.epoch, broker.fenced, broker.rack) == (before, True, "r1")

    run(scenario())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"broker_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"broker_id": 4}, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": []}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [RegisteredListener("A", "", 9092, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [RegisteredListener("A", "h", 0, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [RegisteredListener("A", "h" * 300, 1, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [RegisteredListener("A", "h", 1, 0)] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [SupportedFeature("metadata.version", 7, 20)]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_whoever_does_not_fit_is_refused(changes: dict[str, object], code: ErrorCode) -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            response = await line.ask(ApiKey.BROKER_REGISTRATION, 4, replace(REQUEST, **changes))  # type: ignore[arg-type]
            assert response.error_code == code
            assert sorted(cluster.nodes[1].controller.image.brokers) == [4]

    run(scenario())
