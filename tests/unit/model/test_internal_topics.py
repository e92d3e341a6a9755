"""The list of internal topics agrees with those who write them."""

from riverlog.checkpoints.journal import TOPIC
from riverlog.cli.internal_topics import KEPT
from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.model.internal_topics import COORDINATOR_TOPICS, INTERNAL_TOPICS


def test_every_topic_that_a_part_of_the_node_writes_is_internal() -> None:
    assert {GroupCoordinator.TOPIC, TransactionCoordinator.TOPIC} == COORDINATOR_TOPICS
    assert {*COORDINATOR_TOPICS, TOPIC} == INTERNAL_TOPICS


def test_what_is_lost_with_an_internal_topic_is_known() -> None:
    assert KEPT.keys() == INTERNAL_TOPICS
