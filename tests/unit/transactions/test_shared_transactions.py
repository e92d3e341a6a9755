"""Shared transactions: who joins, who decides, what is repeated, what comes too late."""

from riverlog.model.errors import ErrorCode
from riverlog.model.limits import MEMBERS_PER_BATCH_MAX
from riverlog.model.transactions import NOTHING_FOLLOWS, ProducerIdentity
from riverlog.transactions.commands import (
    BatchesReply,
    DescribeBatches,
    DescribeTransactions,
    EndBatch,
    EndTransaction,
    InitProducer,
    JoinBatch,
    ListTransactions,
    ProducerReply,
    SendMarkers,
    VerifyPartitions,
)
from riverlog.transactions.incarnations import BatchName
from riverlog.transactions.states import NOBODY, TransactionState
from tests.support.transactions import ID, P0, P1, V2, Coordinator, producer_of

DAY = 86_400.0


def begun(writers: int = 2) -> tuple[Coordinator, ProducerIdentity, list[ProducerIdentity]]:
    """A batch that members have joined, each with a partition."""
    coordinator = Coordinator()
    owner = coordinator.init(timeout_ms=10_000)
    members = [coordinator.join(owner, task=task).producer for task in range(writers)]
    for member in members:
        assert coordinator.add(member) is ErrorCode.NONE
    return coordinator, owner, members


def committed(coordinator: Coordinator, incarnation: str = "a") -> int:
    reply = coordinator.ask(DescribeBatches(ID, incarnation))
    assert isinstance(reply, BatchesReply)
    return reply.committed


def test_listed_members_are_committed_and_all_others_aborted() -> None:
    coordinator, owner, (first, second) = begun()
    assert coordinator.end_batch(owner, 0, first) is ErrorCode.NONE
    assert coordinator.write_markers() == [
        SendMarkers(ID, producer_of(first.id, 1), True, (P0,), V2),
        SendMarkers(ID, producer_of(second.id, 1), False, (P0,), V2),
    ]
    assert (coordinator.held().state, committed(coordinator)) == (TransactionState.COMPLETE_COMMIT, 0)


def test_one_batch_of_the_log_decides() -> None:
    coordinator, owner, members = begun()
    batch = BatchName("a", 0)
    before = len(coordinator.log)
    coordinator.ask(EndBatch(ID, owner, batch, True, tuple(members)))
    assert len(coordinator.log) - before == 1 + len(members)
    coordinator.restart()
    coordinator.pass_time(0)
    assert [each.committed for each in coordinator.write_markers()] == [True, True]


def test_members_write_in_the_name_of_the_transactional_id() -> None:
    coordinator, _owner, (first, second) = begun()
    assert coordinator.add(first, P1) is ErrorCode.NONE
    assert coordinator.ask(VerifyPartitions(ID, first, (P0, P1))).codes == (ErrorCode.NONE, ErrorCode.NONE)
    asked = coordinator.ask(VerifyPartitions(ID, second, (P0, P1))).codes
    assert asked == (ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE)
    (described,) = coordinator.ask(DescribeTransactions((ID,)))
    assert (described.state, described.partitions) == (TransactionState.ONGOING, {P0, P1})
    listed = coordinator.ask(ListTransactions(producer_ids=frozenset({second.id})))
    assert [transactional_id for transactional_id, _ in listed] == [ID]


def test_to_join_again_gives_the_same_member_and_another_attempt_another() -> None:
    coordinator, owner, (first, _) = begun()
    written = len(coordinator.log)
    assert coordinator.join(owner, task=0).producer == first
    assert len(coordinator.log) == written
    assert coordinator.join(owner, task=0, attempt=1).producer.id not in (first.id, NOBODY.id)


def test_the_next_batch_uses_the_same_ids_with_their_next_epochs() -> None:
    coordinator, owner, (first, second) = begun()
    coordinator.end_batch(owner, 0, first, second)
    coordinator.write_markers()
    again = {coordinator.join(owner, 1, task=task).producer for task in range(2)}
    assert again == {producer_of(first.id, 1), producer_of(second.id, 1)}


def test_who_comes_back_from_the_dead_is_refused_also_where_it_has_not_written() -> None:
    coordinator, owner, (dead, alive) = begun()
    idle = coordinator.join(owner, task=2).producer
    coordinator.end_batch(owner, 0, alive)
    for late in (dead, idle, alive):
        assert coordinator.add(late, P1) is ErrorCode.PRODUCER_FENCED
    coordinator.write_markers()
    coordinator.join(owner, 1, task=0)
    assert coordinator.add(dead, P1) is ErrorCode.PRODUCER_FENCED
    assert coordinator.ask(VerifyPartitions(ID, dead, (P0,))).codes == (ErrorCode.PRODUCER_FENCED,)


def test_a_member_that_leaves_is_aborted_at_once_and_the_batch_goes_on_without_it() -> None:
    coordinator, owner, (failed, other) = begun()
    reply = coordinator.ask(EndTransaction(ID, failed, False, V2))
    assert reply == ProducerReply(producer=producer_of(failed.id, 1))
    assert coordinator.held().state is TransactionState.ONGOING
    assert coordinator.add(failed, P1) is ErrorCode.PRODUCER_FENCED
    assert coordinator.ask(EndTransaction(ID, failed, False, V2)).code is ErrorCode.PRODUCER_FENCED
    assert coordinator.write_markers() == [SendMarkers(ID, producer_of(failed.id, 1), False, (P0,), V2)]
    again = coordinator.join(owner, task=0, attempt=1).producer
    assert again == producer_of(failed.id, 1)
    coordinator.add(again)
    assert coordinator.end_batch(owner, 0, failed, other) is ErrorCode.TRANSACTION_ABORTABLE
    assert coordinator.end_batch(owner, 0, again, other) is ErrorCode.NONE
    assert [each.committed for each in coordinator.write_markers()] == [True, True]
    assert (coordinator.held().state, committed(coordinator)) == (TransactionState.COMPLETE_COMMIT, 0)


def test_a_batch_may_end_while_one_that_left_is_still_ending_also_across_a_restart() -> None:
    coordinator, owner, (failed, other) = begun()
    coordinator.ask(EndTransaction(ID, failed, False, V2))
    assert coordinator.end_batch(owner, 0, other) is ErrorCode.NONE
    coordinator.restart()
    coordinator.pass_time(0)
    ended = {(each.producer, each.committed) for each in coordinator.write_markers()}
    assert ended == {(producer_of(failed.id, 1), False), (producer_of(other.id, 1), True)}
    assert coordinator.held().state is TransactionState.COMPLETE_COMMIT
    again = {coordinator.join(owner, 1, task=task).producer.id for task in range(2)}
    assert again == {failed.id, other.id}


def test_no_member_commits_and_one_that_has_written_nothing_leaves_nothing() -> None:
    coordinator, owner, (first, _) = begun()
    assert coordinator.ask(EndTransaction(ID, first, True, V2)).code is ErrorCode.INVALID_TXN_STATE
    idle = coordinator.join(owner, task=2).producer
    coordinator.ask(EndTransaction(ID, idle, False, V2))
    assert coordinator.markers == []
    assert coordinator.join(owner, task=2, attempt=1).producer == producer_of(idle.id, 1)


def test_a_free_member_writes_nothing() -> None:
    coordinator, owner, (first, _) = begun()
    coordinator.end_batch(owner, 0, first)
    coordinator.write_markers()
    assert coordinator.add(producer_of(first.id, 1)) is ErrorCode.INVALID_TXN_STATE


def test_repetition_gives_the_same_answer_also_after_a_restart() -> None:
    coordinator, owner, (first, second) = begun()
    for _ in range(2):
        assert coordinator.end_batch(owner, 0, first) is ErrorCode.NONE
    coordinator.restart()
    coordinator.pass_time(0)
    coordinator.write_markers()
    assert coordinator.end_batch(owner, 0, first) is ErrorCode.NONE
    assert coordinator.end_batch(owner, 0, second) is ErrorCode.NONE  # no second decision
    assert coordinator.end_batch(owner, 0, committed=False) is ErrorCode.INVALID_TXN_STATE
    assert coordinator.markers == []


def test_a_committed_batch_has_nothing_more_to_write() -> None:
    coordinator, owner, members = begun()
    coordinator.end_batch(owner, 0, *members)
    assert coordinator.join(owner, 0, task=0, attempt=9) == ProducerReply()


def test_an_aborted_batch_is_written_again_by_others() -> None:
    coordinator, owner, (first, _) = begun()
    assert coordinator.end_batch(owner, 0, committed=False) is ErrorCode.NONE
    assert coordinator.end_batch(owner, 0, committed=False) is ErrorCode.NONE
    coordinator.write_markers()
    again = coordinator.join(owner, 0).producer
    assert again != first
    assert coordinator.end_batch(owner, 0, first) is ErrorCode.TRANSACTION_ABORTABLE
    assert coordinator.end_batch(owner, 0, again) is ErrorCode.NONE


def test_who_joins_while_the_batch_before_ends_waits_for_that() -> None:
    coordinator, owner, members = begun()
    coordinator.end_batch(owner, 0, *members)
    ticket = coordinator.submit(JoinBatch(ID, owner, BatchName("a", 1), 0, 0))
    (first, second), coordinator.markers = coordinator.markers, []
    coordinator.markers = [first]
    coordinator.write_markers()
    assert ticket not in coordinator.answers
    coordinator.markers = [second]
    coordinator.write_markers()
    assert coordinator.answers[ticket].producer == producer_of(members[0].id, 1)


def test_one_batch_is_open_at_a_time() -> None:
    coordinator, owner, _ = begun()
    for number, incarnation in ((1, "a"), (0, "b")):
        assert coordinator.join(owner, number, incarnation=incarnation).code is ErrorCode.INVALID_TXN_STATE
        assert coordinator.end_batch(owner, number, incarnation=incarnation) is ErrorCode.INVALID_TXN_STATE


def test_a_batch_that_was_begun_is_committed_before_any_other() -> None:
    coordinator = Coordinator()
    owner = coordinator.init()
    coordinator.join(owner, 4)
    coordinator.end_batch(owner, 4, committed=False)
    for number in (3, 5):
        assert coordinator.join(owner, number).code is ErrorCode.INVALID_TXN_STATE
        assert coordinator.end_batch(owner, number) is ErrorCode.INVALID_TXN_STATE
    assert coordinator.join(owner, 4).code is ErrorCode.NONE
    assert coordinator.join(coordinator.init(), 3).code is ErrorCode.NONE


def test_a_batch_that_nobody_joined_can_be_committed() -> None:
    coordinator = Coordinator()
    owner = coordinator.init()
    coordinator.ask(EndBatch(ID, owner, BatchName("a", 0), True, marker=b"empty"))
    assert coordinator.ask(DescribeBatches(ID, "a")) == BatchesReply(ErrorCode.NONE, 0, b"empty")
    assert coordinator.join(owner, 0) == ProducerReply()


def test_of_a_task_one_attempt_is_listed() -> None:
    coordinator, owner, (first, _) = begun()
    other = coordinator.join(owner, task=0, attempt=1).producer
    assert coordinator.end_batch(owner, 0, first, other) is ErrorCode.INVALID_REQUEST
    assert coordinator.end_batch(owner, 0, first, first) is ErrorCode.INVALID_REQUEST
    assert coordinator.end_batch(owner, 0, other) is ErrorCode.NONE


def test_who_joins_beside_others_needs_them() -> None:
    coordinator, owner, members = begun()
    batch = BatchName("a", 0)
    assert coordinator.ask(JoinBatch(ID, owner, batch, -1, 0, beside=tuple(members))).code is ErrorCode.NONE
    coordinator.end_batch(owner, 0, committed=False)
    coordinator.write_markers()
    missed = coordinator.ask(JoinBatch(ID, owner, batch, -1, 0, beside=tuple(members)))
    assert missed.code is ErrorCode.TRANSACTION_ABORTABLE
    assert not coordinator.held().is_shared_now


def test_a_second_owner_fences_the_first_and_aborts_what_it_left() -> None:
    coordinator, first, members = begun()
    ticket = coordinator.submit(InitProducer(ID, 10_000))
    assert ticket not in coordinator.answers
    assert [each.committed for each in coordinator.write_markers()] == [False, False]
    second = coordinator.answers[ticket].producer
    assert coordinator.join(first).code is ErrorCode.PRODUCER_FENCED
    assert coordinator.end_batch(first, 0, *members) is ErrorCode.PRODUCER_FENCED
    assert coordinator.end_batch(second, 0, *members) is ErrorCode.TRANSACTION_ABORTABLE
    assert coordinator.join(second).code is ErrorCode.NONE


def test_a_second_owner_waits_for_nobody_where_nothing_was_written() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    idle = coordinator.join(first).producer
    second = coordinator.ask(InitProducer(ID, 10_000)).producer
    assert second != first
    assert coordinator.add(idle) is ErrorCode.PRODUCER_FENCED


def test_a_second_owner_knows_what_the_first_has_committed() -> None:
    coordinator, first, members = begun()
    coordinator.end_batch(first, 0, *members)
    second = coordinator.init()
    assert coordinator.join(second, 0) == ProducerReply()
    assert coordinator.end_batch(second, 0) is ErrorCode.NONE


def test_a_new_incarnation_begins_at_batch_0_and_the_old_one_may_come_back() -> None:
    coordinator, owner, members = begun()
    coordinator.end_batch(owner, 0, *members)
    coordinator.write_markers()
    fresh = coordinator.join(owner, 0, incarnation="b").producer
    assert fresh != NOBODY
    assert coordinator.end_batch(owner, 0, fresh, incarnation="b") is ErrorCode.NONE
    assert (committed(coordinator, "a"), committed(coordinator, "b")) == (0, 0)
    assert coordinator.join(owner, 0, incarnation="a") == ProducerReply()


def test_time_aborts_and_the_owner_may_begin_again() -> None:
    coordinator, owner, members = begun()
    coordinator.pass_time(5)
    coordinator.restart()
    coordinator.pass_time(5.1)
    assert [each.committed for each in coordinator.write_markers()] == [False, False]
    assert coordinator.end_batch(owner, 0, *members) is ErrorCode.TRANSACTION_ABORTABLE
    assert coordinator.add(members[0]) is ErrorCode.PRODUCER_FENCED
    again = coordinator.join(owner).producer
    coordinator.pass_time(9)
    assert coordinator.end_batch(owner, 0, again) is ErrorCode.NONE
    coordinator.pass_time(100)
    assert committed(coordinator) == 0


def test_only_the_owner_decides_and_lets_join() -> None:
    coordinator, owner, members = begun()
    stranger = producer_of(99, 0)
    assert coordinator.join(stranger).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.end_batch(members[0], 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert Coordinator().end_batch(owner, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.ask(DescribeBatches("nobody", "a")).code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_the_owner_writes_nothing_itself_while_a_batch_is_open() -> None:
    coordinator, owner, _ = begun()
    assert coordinator.add(owner) is ErrorCode.INVALID_TXN_STATE
    assert coordinator.end(owner).code is ErrorCode.INVALID_TXN_STATE


def test_an_ordinary_transaction_and_a_shared_one_follow_each_other() -> None:
    coordinator, owner, members = begun()
    coordinator.end_batch(owner, 0, *members)
    coordinator.write_markers()
    assert coordinator.add(owner) is ErrorCode.NONE
    assert coordinator.join(owner, 1).code is ErrorCode.INVALID_TXN_STATE
    assert coordinator.end_batch(owner, 1) is ErrorCode.INVALID_TXN_STATE
    owner = coordinator.end(owner).producer
    assert [each.committed for each in coordinator.write_markers()] == [True]
    assert coordinator.held().state is TransactionState.COMPLETE_COMMIT
    assert coordinator.join(owner, 1).code is ErrorCode.NONE
    assert committed(coordinator) == 0


def test_a_batch_has_no_more_members_than_it_may() -> None:
    coordinator = Coordinator()
    owner = coordinator.init()
    for task in range(MEMBERS_PER_BATCH_MAX):
        assert coordinator.join(owner, task=task).code is ErrorCode.NONE
    assert coordinator.join(owner, task=MEMBERS_PER_BATCH_MAX).code is ErrorCode.POLICY_VIOLATION


def test_ids_that_are_idle_for_long_are_forgotten_with_their_members() -> None:
    coordinator, owner, members = begun()
    coordinator.end_batch(owner, 0, *members)
    coordinator.write_markers()
    coordinator.pass_time(8 * DAY)
    assert (coordinator.machine.state, coordinator.machine.pools) == ({}, {})


def test_a_snapshot_is_what_the_machine_remembers() -> None:
    coordinator, owner, (first, _) = begun()
    coordinator.end_batch(owner, 0, first)
    other = Coordinator()
    for fact in coordinator.machine.snapshot():
        other.machine.apply(fact)
    assert (other.machine.state, other.machine.pools) == (coordinator.machine.state, coordinator.machine.pools)


def test_ids_are_exchanged_when_their_epochs_are_used_up() -> None:
    coordinator = Coordinator()
    owner = coordinator.init()
    used: set[ProducerIdentity] = set()
    for number in range(40_000):
        member = coordinator.join(owner, number).producer
        assert member not in used
        used.add(member)
        coordinator.add(member)
        assert coordinator.end_batch(owner, number, member) is ErrorCode.NONE
        coordinator.write_markers()
        coordinator.answers.clear()
        coordinator.log.clear()
    assert len({member.id for member in used}) == 2
    assert len(coordinator.machine.pools[ID]) == 1
    assert coordinator.add(producer_of(min(used).id, 32_766)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_id_behind_which_nothing_follows_is_forgotten_early_and_no_other() -> None:
    for marker, is_known in ((NOTHING_FOLLOWS, False), (b"", True)):
        coordinator, owner, (first, second) = begun()
        end = EndBatch(ID, owner, BatchName("a", 0), True, (first, second), marker=marker)
        assert coordinator.ask(end).code is ErrorCode.NONE
        coordinator.write_markers()
        coordinator.pass_time(60)
        assert coordinator.ask(end).code is ErrorCode.NONE  # who asks again is told
        coordinator.pass_time(DAY / 8)
        known = [name for name, _ in coordinator.ask(ListTransactions())]
        assert (ID in known) is is_known
