"""A course remembers where it begins, what was done, and what came to it."""

from riverlog.pipelines.lineage import Lineage, LineageStep


def test_steps_follow_one_another_and_bring_others() -> None:
    payments = Lineage(("payments", "refunds")).after("filter")
    orders = Lineage(("orders",)).after("watermark").after("join", payments).after("select")
    assert [step.words for step in orders.steps] == ["watermark", "join", "select"]
    assert orders.steps[1] == LineageStep("join", payments)
    assert orders.topics == ("orders", "payments", "refunds")
    assert Lineage(("orders",)).after("join", Lineage(("orders",))).topics == ("orders",)
    assert Lineage().topics == ()
