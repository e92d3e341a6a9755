"""The doctor's report."""

from riverlog.cli.commands.doctor import report
from riverlog.cli.examination import CheckResult


def test_a_report_lists_what_was_tried_and_what_to_do() -> None:
    steps = [
        CheckResult("bootstrap a:1", "resolve", True, 0.52, "10.0.0.1"),
        CheckResult("bootstrap a:1", "connect", False, None, "refused", "Is a broker running there?"),
        CheckResult("broker 1 at a:1", "clock", None, None, "not known"),
        CheckResult("cluster", "controller", True, None, "node 1"),
    ]
    assert report(steps) == (
        "bootstrap a:1\n"
        "  ok     resolve     10.0.0.1 (0.5 ms)\n"
        "  WRONG  connect     refused\n"
        "                     Is a broker running there?\n"
        "broker 1 at a:1\n"
        "  ?      clock       not known\n"
        "cluster\n"
        "  ok     controller  node 1\n"
        "\n"
        "1 problem found."
    )


def test_a_clean_report_says_so() -> None:
    steps = [
        CheckResult("broker 1 at a:1", "clock", None, None, "not known"),
        CheckResult("cluster", "controller", True, None, "node 1"),
    ]
    assert report(steps).endswith("\nNothing is wrong.")
