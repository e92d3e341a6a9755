"""What is said about a cluster that owes an answer: once that it does, and once that it does no more."""

import pytest

from riverlog.cli.patience import Notices
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.model.errors import ErrorCode

Silence = tuple[float, KafkaError | None]


def said_about(silences: list[Silence], capsys: pytest.CaptureFixture[str]) -> list[str]:
    coming = iter(silences)
    notices = Notices(lambda: next(coming), "answer")
    for _ in silences:
        notices.look()
    return capsys.readouterr().err.splitlines()


def test_nothing_is_said_while_the_cluster_answers(capsys: pytest.CaptureFixture[str]) -> None:
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")
    assert said_about([(0.0, None), (1.9, full), (0.0, None)], capsys) == []


def test_each_silence_is_one_line_and_so_is_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    away = Unreachable.all_of(["a:1: Connection refused"])
    once = [(2.1, away), (2.3, away), (60.0, away), (0.0, None), (0.2, None)]
    told = [
        "riverlog: no answer for 2 s (no broker could be reached: a:1: Connection refused); still trying, Ctrl-C ends",
        "riverlog: the cluster answers again",
    ]
    assert said_about([*once, *once], capsys) == [*told, *told]


def test_a_reason_that_comes_later_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    away = Unreachable("a:1: closed")
    assert said_about([(2.0, None), (2.2, None), (9.7, away), (9.9, away)], capsys) == [
        "riverlog: no answer for 2 s; still trying, Ctrl-C ends",
        "riverlog: no answer for 10 s (a:1: closed); still trying, Ctrl-C ends",
    ]
