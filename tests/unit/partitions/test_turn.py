"""The end of a turn: once for all, writes before looks before sends."""

import pytest

from riverlog.partitions.turn import Turn
from tests.support.virtual_time import run


def test_what_came_together_is_done_together_writes_first() -> None:
    done: list[str] = []

    async def scenario() -> None:
        turn = Turn()
        turn.send(lambda: done.append("send a"))
        turn.write(lambda: done.append("write a"))
        turn.write(lambda: done.append("write b"))
        assert done == []

    run(scenario())
    assert done == ["write a", "write b", "send a"]


def test_whoever_waits_for_several_writes_looks_once_after_all_and_before_what_it_sends() -> None:
    done: list[str] = []

    async def scenario() -> None:
        turn = Turn()

        def look() -> None:
            done.append("look")
            turn.send(lambda: done.append("send"))

        def write() -> None:
            done.append("write")
            turn.look(look)

        turn.write(write)
        turn.write(write)

    run(scenario())
    assert done == ["write", "write", "look", "send"]


@pytest.mark.parametrize(("readers", "first"), [(1, "reader"), (4, "reader"), (5, "writer")])
def test_few_readers_are_answered_before_writers_and_many_after_them(readers: int, first: str) -> None:
    sent: list[str] = []

    async def scenario() -> None:
        turn = Turn()

        def write() -> None:
            turn.send(lambda: sent.append("writer"))
            for reader in range(readers):
                turn.look(lambda _reader=reader: turn.send(lambda: sent.append("reader")))  # type: ignore[misc]

        turn.write(write)
        turn.end()

    run(scenario())
    assert sent[0] == first
    assert sorted(sent) == ["reader"] * readers + ["writer"]


def test_a_look_by_itself_is_done_when_the_turn_ends() -> None:
    done: list[str] = []

    async def scenario() -> None:
        turn = Turn()
        turn.look(lambda: done.append("look"))
        assert done == []

    run(scenario())
    assert done == ["look"]


def test_what_a_write_leads_to_is_sent_at_once_and_what_a_send_leads_to_in_the_next_turn() -> None:
    done: list[tuple[str, int]] = []

    async def scenario() -> None:
        turn = Turn()

        def send() -> None:
            done.append(("send", turn.number))
            turn.write(lambda: done.append(("write again", turn.number)))

        def write() -> None:
            done.append(("write", turn.number))
            turn.send(send)

        turn.write(write)
        assert turn.number == 0
        turn.end()
        assert done == [("write", 1), ("send", 1)]

    run(scenario())
    assert done[2:] == [("write again", 2)]
