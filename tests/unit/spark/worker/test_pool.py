"""Things that a worker keeps for its next tasks."""

import pytest

from riverlog.spark.worker.pool import KEPT_MAX, ResourcePool


class Thing:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_a_thing_is_lent_again_for_the_same_purpose_only() -> None:
    pool: ResourcePool[Thing] = ResourcePool()
    with pool.lend("a", Thing) as first:
        assert pool.waiting == []
        with pool.lend("a", Thing) as meanwhile:
            assert meanwhile is not first
    with pool.lend("b", Thing) as other:
        assert other not in (first, meanwhile)
    with pool.lend("a", Thing) as again:
        assert again is first


def test_what_has_failed_is_let_go() -> None:
    pool: ResourcePool[Thing] = ResourcePool()
    with pytest.raises(OSError, match="gone"), pool.lend("a", Thing) as thing:
        raise OSError("gone")
    assert thing.closed
    assert pool.waiting == []


def test_few_are_kept_and_all_can_be_let_go() -> None:
    pool: ResourcePool[Thing] = ResourcePool()
    things = []
    for number in range(KEPT_MAX + 2):
        with pool.lend(str(number), Thing) as thing:
            things.append(thing)
    assert pool.waiting == things[2:]
    pool.close()
    assert all(thing.closed for thing in things)
