import pytest

from riverlog.pipelines.operators.late_rows import (
    Drop,
    Policy,
    Recompute,
    SideOutput,
    late_words,
    policy,
    recompute,
    side_output,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("drop", Drop()),
        ("side-output:orders-late", SideOutput("orders-late")),
        ("recompute:1 hour", Recompute(3_600_000)),
        ("recompute:1 hour, then side-output:old", Recompute(3_600_000, SideOutput("old"))),
        ("recompute: 90s, drop", Recompute(90_000)),
    ],
)
def test_reads_policies(text: str, expected: Policy) -> None:
    assert policy(text) == expected


def test_policies_can_be_made_by_functions() -> None:
    assert policy(side_output("late")) == SideOutput("late")
    assert recompute("1 minute", beyond=side_output("late")) == Recompute(60_000, SideOutput("late"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ignore", "there is no late policy 'ignore'; write drop, side-output:TOPIC or recompute:1 hour"),
        ("side-output:", "a side output needs a topic"),
        ("recompute:soon", "the allowed lateness 'soon' is no length of time"),
        ("recompute:1 hour, then recompute:2 hours", "not recomputed again"),
    ],
)
def test_refuses_what_is_no_policy(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        policy(text)


def test_a_policy_is_told_in_words() -> None:
    assert late_words(policy("drop")) == ""
    assert late_words(policy("side-output:late")) == "; late rows to late"
    assert late_words(policy("recompute:1 hour, then side-output:old")) == "; recomputed for 1 hour; late rows to old"
