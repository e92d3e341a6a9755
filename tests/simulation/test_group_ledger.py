"""What the ledger of groups finds, one hand-made history for each."""

from riverlog.model.ids import TopicPartition
from tests.simulation.group_ledger import GroupLedger

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


def a_ledger(*, durable: bool = True) -> tuple[GroupLedger, list[str]]:
    violations: list[str] = []
    return GroupLedger(violations.append, durable=durable), violations


def test_a_history_without_fault_is_not_blamed() -> None:
    ledger, violations = a_ledger()
    for offset in range(4):
        ledger.given("g", ZERO, offset)
    ledger.acknowledged("g", {ZERO: 2}, asked_after=0)
    ledger.acknowledged("g", {ZERO: 4}, asked_after=0)
    ledger.power_lost()
    ledger.answered("g", ledger.floors("g"), {ZERO: 5, ONE: 1})
    ledger.judge("g", ZERO, 4, range(6))
    assert violations == []
    assert ledger.commits_acknowledged == 2


def test_a_commit_below_an_acknowledged_one_is_found() -> None:
    ledger, violations = a_ledger()
    ledger.acknowledged("g", {ZERO: 4}, asked_after=0)
    ledger.acknowledged("other", {ZERO: 3}, asked_after=0)
    ledger.acknowledged("g", {ONE: 1, ZERO: 3}, asked_after=0)
    assert violations == ["group g was let commit 3 for orders-0, where 4 was committed"]


def test_an_acknowledged_commit_that_was_forgotten_is_found() -> None:
    ledger, violations = a_ledger()
    ledger.acknowledged("g", {ZERO: 4, ONE: 2}, asked_after=0)
    ledger.power_lost()
    ledger.answered("g", ledger.floors("g"), {ZERO: 3})
    assert violations == [
        "group g has committed 3 for orders-0, but 4 was acknowledged",
        "group g has committed None for orders-1, but 2 was acknowledged",
    ]


def test_what_is_not_durable_may_be_forgotten_with_the_power_and_not_without() -> None:
    ledger, violations = a_ledger(durable=False)
    ledger.acknowledged("g", {ZERO: 4}, asked_after=0)
    before = ledger.floors("g")
    ledger.answered("g", before, {})
    assert len(violations) == 1
    ledger.power_lost()
    ledger.answered("g", before, {})
    assert len(violations) == 1


def test_an_answer_that_the_power_failed_before_promises_only_what_is_durable() -> None:
    for durable in (True, False):
        ledger, violations = a_ledger(durable=durable)
        ledger.power_lost()
        ledger.acknowledged("g", {ZERO: 4}, asked_after=0)
        ledger.acknowledged("g", {ONE: 2}, asked_after=1)
        assert ledger.floors("g") == ({ZERO: 4, ONE: 2} if durable else {ONE: 2})
        assert violations == []


def test_a_record_that_no_member_was_given_is_found() -> None:
    ledger, violations = a_ledger()
    ledger.given("g", ZERO, 0)
    ledger.given("g", ZERO, 2)
    ledger.judge("g", ZERO, 3, range(5))
    assert violations == ["group g has committed 3 for orders-0 and was never given [1]"]
