"""What was perhaps meant."""

from riverlog.cli.terminal.suggestions import did_you_mean, nearest


def test_the_nearest_word_whatever_its_case() -> None:
    assert nearest("ordrs", ["orders", "invoices"]) == "orders"
    assert nearest("ORDERS", ["Orders"]) == "Orders"
    assert nearest("xyz", ["orders"]) is None


def test_a_part_of_a_sentence() -> None:
    assert did_you_mean("ordrs", ["orders"]) == "; did you mean 'orders'?"
    assert did_you_mean("xyz", ["orders"]) == ""
