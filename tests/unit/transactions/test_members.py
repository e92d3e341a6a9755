from riverlog.model.transactions import PRODUCER_EPOCH_MAX
from riverlog.transactions.incarnations import BatchName
from riverlog.transactions.members import SharedMember, SharedMemberState
from tests.support.transactions import P0, P1, producer_of

BATCH = BatchName("a", 0)
JOINED = SharedMember(producer_of(7, 3), BATCH, task=1, attempt=2)


def test_each_end_brings_the_next_epoch() -> None:
    ended = JOINED.added([P0]).added([P1]).ended(committed=True)
    assert (ended.producer, ended.state, ended.partitions) == (
        producer_of(7, 4),
        SharedMemberState.COMMITTING,
        {P0, P1},
    )
    assert ended.completed().partitions == frozenset()
    assert JOINED.added([P0]).ended(committed=False).state is SharedMemberState.ABORTING


def test_where_nothing_was_written_there_is_nothing_left_to_do() -> None:
    ended = JOINED.ended(committed=True)
    assert (ended.producer, ended.state) == (producer_of(7, 4), SharedMemberState.FREE)
    assert ended.joined(BatchName("a", 1), 5, 6) == SharedMember(producer_of(7, 4), BatchName("a", 1), 5, 6)


def test_an_id_is_spent_when_its_last_epoch_only_fences() -> None:
    last = SharedMember(producer_of(7, PRODUCER_EPOCH_MAX - 1), BATCH, 0, 0)
    assert not last.is_spent
    assert last.ended(committed=True).is_spent
