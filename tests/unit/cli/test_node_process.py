"""The line that says a node can be used."""

from riverlog.cli.node_process import ready_line
from riverlog.model.ids import Address


def test_the_ready_line_names_every_address() -> None:
    assert ready_line(Address("127.0.0.1", 9092), None, Address("127.0.0.1", 9644), None, ("/a", "/b")) == (
        "riverlog ready kafka=127.0.0.1:9092 metrics=http://127.0.0.1:9644 data=/a,/b"
    )
    assert ready_line(Address("127.0.0.1", 9092), None, None, Address("127.0.0.1", 9870), ("/a",)) == (
        "riverlog ready kafka=127.0.0.1:9092 checkpoints=webhdfs://127.0.0.1:9870 data=/a"
    )


def test_an_address_that_means_every_address_is_one_that_can_be_used() -> None:
    line = ready_line(Address("broker-1", 9092), None, Address("0.0.0.0", 9644), None, ("/a",))
    assert line == "riverlog ready kafka=broker-1:9092 metrics=http://broker-1:9644 data=/a"


def test_metrics_that_are_not_served_are_not_named() -> None:
    assert ready_line(Address("::1", 9092), None, None, None, ("/a",)) == "riverlog ready kafka=[::1]:9092 data=/a"
    assert ready_line(None, Address("c1", 9093), None, None, ("/a",)) == "riverlog ready controller=c1:9093 data=/a"
