"""The settings of Kafka's clients: each has one meaning here, or none."""

import inspect

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.cli.kafka_clients import BOOTSTRAP, PARAMETERS, WITHOUT_MEANING, in_kafkas_names
from riverlog.client.network.cluster import Cluster

ARGUMENTS = {name for client in (Admin, Cluster, Consumer, Producer) for name in inspect.signature(client).parameters}


def test_a_name_belongs_to_one_class() -> None:
    assert not PARAMETERS.keys() & WITHOUT_MEANING
    assert not set(BOOTSTRAP) & (PARAMETERS.keys() | WITHOUT_MEANING)


def test_every_name_leads_to_an_argument() -> None:
    assert set(PARAMETERS.values()) <= ARGUMENTS


@pytest.mark.parametrize("client", [Admin, Consumer, Producer])
def test_every_argument_that_text_can_give_has_a_name_of_kafkas(client: type) -> None:
    elsewhere = {"bootstrap", "security", "ports", "cluster", "prefetch_bytes_max", "timeout_ms", "transactional_id"}
    assert set(inspect.signature(client).parameters) - elsewhere <= set(PARAMETERS.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("request_bytes_max allows 7", "max.request.size allows 7"),
        ('auto_offset_reset="earliest" or "latest"', 'auto.offset.reset=earliest or "latest"'),
        ("idempotent=True needs acks", "enable.idempotence=true needs acks"),
        ("delivery_timeout_ms must not be smaller", "delivery.timeout.ms must not be smaller"),
        ("orders_2 is a group", "orders_2 is a group"),
    ],
)
def test_arguments_are_called_by_kafkas_names(text: str, said: str) -> None:
    assert in_kafkas_names(text) == said
