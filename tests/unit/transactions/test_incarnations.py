from riverlog.model.limits import INCARNATIONS_REMEMBERED_MAX
from riverlog.model.transactions import NOTHING_FOLLOWS
from riverlog.transactions.incarnations import NO_BATCH, BatchName, Incarnation, Shared


def test_a_batch_is_open_until_it_is_decided() -> None:
    opened = Shared().opened(BatchName("a", 0))
    assert opened.open_batch == BatchName("a", 0)
    assert opened.aborted().open_batch is None
    committed = opened.committed(BatchName("a", 0), b"here")
    assert (committed.open_batch, committed.find("a")) == (None, Incarnation("a", 0, 0, b"here"))


def test_an_aborted_batch_is_remembered_only_until_another_owner_comes() -> None:
    aborted = Shared().committed(BatchName("a", 3), b"").opened(BatchName("a", 5)).aborted()
    assert [aborted.find("a").may_follow(number) for number in (4, 5, 6)] == [False, True, False]
    assert aborted.renewed().find("a").may_follow(4)
    assert aborted.renewed().find("a") == Incarnation("a", 3, 3)


def test_incarnations_count_by_themselves() -> None:
    both = Shared().committed(BatchName("a", 7), b"").committed(BatchName("b", 0), b"")
    assert (both.find("a").committed, both.find("b").committed, both.find("c").committed) == (7, 0, NO_BATCH)


def test_the_least_recently_used_incarnation_is_forgotten() -> None:
    shared = Shared().committed(BatchName("first", 1), b"").committed(BatchName("second", 1), b"")
    shared = shared.committed(BatchName("first", 2), b"")
    for number in range(INCARNATIONS_REMEMBERED_MAX - 1):
        shared = shared.committed(BatchName(f"later {number}", 0), b"")
    assert (shared.find("first").committed, shared.find("second").committed) == (2, NO_BATCH)


def test_an_id_is_done_once_its_owner_has_said_so_of_all_and_nothing_is_begun_since() -> None:
    assert not Shared().is_done
    done = Shared().opened(BatchName("a", 0)).committed(BatchName("a", 0), NOTHING_FOLLOWS)
    assert done.is_done
    assert not done.opened(BatchName("a", 1)).is_done
    assert not done.opened(BatchName("a", 1)).aborted().is_done
    assert not done.opened(BatchName("b", 0)).committed(BatchName("b", 0), b"").is_done
