"""What was perhaps meant."""

from riverlog.cli.terminal.suggestions import did_you_mean, nearest


def test_the_nearest_name_is_asked_for() -> None:
    assert nearest("ordres", ["orders", "refunds"]) == "orders"
    assert nearest("ORDERS", ["Orders", "refunds"]) == "Orders"
    assert did_you_mean("retentoin.ms", ["retention.ms", "retention.bytes"]) == "; did you mean 'retention.ms'?"


def test_nothing_is_asked_where_nothing_is_near() -> None:
    assert nearest("orders", ["refunds"]) is None
    assert did_you_mean("orders", []) == ""
