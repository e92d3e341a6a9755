"""What a controller takes for granted of brokers and of itself."""

from riverlog.metadata.commands.liveness import BecomeActive, BrokerHeartbeat, Woken
from riverlog.metadata.features import FIRST_LEVELS
from riverlog.metadata.limits import PARTITIONS_PER_WAKE_MAX, RECORDS_PER_BATCH_MAX
from riverlog.model.ids import NodeId


def test_a_new_cluster_begins_with_the_levels_of_this_version() -> None:
    assert BecomeActive().levels == FIRST_LEVELS


def test_a_slice_fits_into_one_batch() -> None:
    assert Woken().partitions_max == PARTITIONS_PER_WAKE_MAX < RECORDS_PER_BATCH_MAX


def test_a_broker_that_says_nothing_else_wants_to_be_let_in() -> None:
    beat = BrokerHeartbeat(NodeId(1), 0, 0, 1)
    assert not (beat.want_fence or beat.want_shut_down or beat.is_ours)
