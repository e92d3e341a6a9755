"""Deadlines by name."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.model.machine import Instant
from riverlog.model.timers import Timers


def at(second: float) -> Instant:
    return Instant(second)


def due(timers: Timers[str], second: float) -> list[str]:
    names = []
    while (name := timers.pop(at(second))) is not None:
        names.append(name)
    return names


def test_a_deadline_is_due_once() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", at(2))
    assert timers.next() == 2
    assert due(timers, 1) == []
    assert due(timers, 2) == ["a"]
    assert due(timers, 3) == []
    assert timers.next() is None


def test_a_moved_deadline_is_due_when_it_was_moved_to() -> None:
    timers: Timers[str] = Timers()
    timers.set("later", at(1))
    timers.set("later", at(5))
    timers.set("sooner", at(5))
    timers.set("sooner", at(1))
    assert due(timers, 1) == ["sooner"]
    assert due(timers, 4) == []
    assert due(timers, 5) == ["later"]


def test_a_cancelled_deadline_never_comes() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", at(1))
    timers.cancel("a")
    timers.cancel("unknown")
    assert due(timers, 9) == []


def test_moving_deadlines_later_costs_no_memory() -> None:
    timers: Timers[str] = Timers()
    for second in range(1000):
        timers.set("heartbeat", at(10 + second))
    assert len(timers._heap) == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abc"), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("due"), st.just(""), st.integers(0, 20)),
    ),
    max_size=40,
)


@given(STEPS)
def test_timers_are_a_dictionary_with_an_alarm(steps: list[tuple[str, str, int]]) -> None:
    timers: Timers[str] = Timers()
    plain: dict[str, int] = {}
    now = 0
    for step, name, number in steps:
        match step:
            case "set":
                timers.set(name, at(number))
                plain[name] = number
            case "cancel":
                timers.cancel(name)
                plain.pop(name, None)
            case "due":
                now = max(now, number)
                expected = {name for name, deadline in plain.items() if deadline <= now}
                assert sorted(due(timers, now)) == sorted(expected)
                plain = {name: deadline for name, deadline in plain.items() if name not in expected}
        assert {name: timers.get(name) for name in plain} == plain
        upcoming = timers.next()
        assert not plain or (upcoming is not None and upcoming <= min(plain.values()))
