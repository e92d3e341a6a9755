"""Topic patterns: whole names, Kafka's code for a bad pattern, and no pattern that takes forever."""

import subprocess
import sys

import pytest

from riverlog.groups.consumer.subscriptions import check_pattern, matching
from riverlog.groups.limits import TOPIC_PATTERN_CHARACTERS_MAX
from riverlog.model.errors import ErrorCode, Refusal

NAMES = ["orders", "orders-eu", "payments", "__consumer_offsets", "a.b"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("(orders|payments)", {"orders", "payments"}),
        (r"[a-z]\.[a-z]", {"a.b"}),
        ("(?i)ORDERS", {"orders"}),
        (".*", set(NAMES)),
        ("rder", set()),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, matched: set[str]):
    assert matching(pattern, NAMES) == matched


@pytest.mark.parametrize(
    "pattern",
    ["(", "[a", "*", "a{1001}", r"(a)\1", "(?=orders)", "\\", "a" * 5000, "((a{100}){100}){100}", ".*a.{900}"],
)
def test_what_is_no_pattern_is_refused_with_one_sentence(pattern: str):
    with pytest.raises(Refusal) as refused:
        check_pattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message.endswith(".")
    assert len(refused.value.message) < TOPIC_PATTERN_CHARACTERS_MAX + 200


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+b", "(a*)*b", "(.*.*.*.*.*.*)*x"])
def test_patterns_that_explode_elsewhere_are_answered(pattern: str):
    assert matching(pattern, ["a" * 249]) == frozenset()


def test_a_bad_pattern_writes_nothing_and_a_node_without_patterns_does_not_load_the_library():
    script = (
        "import sys, riverlog.groups.consumer.subscriptions as s\n"
        "assert 're2' not in sys.modules\n"
        "try: s.check_pattern('(')\n"
        "except Exception: pass\n"
        "assert 're2' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
