from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionMarkers, TransactionVersion


def test_markers_of_the_same_end_are_equal_so_that_repetitions_can_be_told() -> None:
    def markers(committed: bool) -> TransactionMarkers:
        return TransactionMarkers(
            ProducerId(7),
            ProducerEpoch(3),
            coordinator_epoch=0,
            committed=committed,
            partitions=(TopicPartition("orders", 0),),
            version=TransactionVersion.EPOCH_PER_TRANSACTION,
        )

    assert markers(True) == markers(True)
    assert markers(True) != markers(False)


def test_the_levels_are_those_of_the_feature() -> None:
    assert TransactionVersion.EPOCH_PER_TRANSACTION == 2
