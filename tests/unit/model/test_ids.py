"""Names of things as text."""

from riverlog.model.ids import Address, TopicPartition


def test_a_partition_is_written_like_its_folder():
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_an_address_is_written_so_that_it_can_be_used():
    assert str(Address("broker-1", 9092)) == "broker-1:9092"
    assert str(Address("::1", 9092)) == "[::1]:9092"
