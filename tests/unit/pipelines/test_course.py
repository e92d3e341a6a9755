"""A course remembers where it begins, what was done, and what came to it."""

from riverlog.pipelines.course import Course, Step


def test_steps_follow_one_another_and_bring_others() -> None:
    payments = Course(("payments", "refunds")).after("filter")
    orders = Course(("orders",)).after("watermark").after("join", payments).after("select")
    assert [step.words for step in orders.steps] == ["watermark", "join", "select"]
    assert orders.steps[1] == Step("join", payments)
    assert orders.topics == ("orders", "payments", "refunds")
    assert Course(("orders",)).after("join", Course(("orders",))).topics == ("orders",)
    assert Course().topics == ()
