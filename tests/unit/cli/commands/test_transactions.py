"""What is said about transactions, and what is refused before any broker is asked."""

import pytest

from riverlog.cli.commands.transactions import STATES, description, hung_row, lines_of
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.client.admin.transactions import ProducerDescription, TransactionDescription
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from riverlog.transactions.states import TransactionState

OPEN = TransactionDescription(
    "orders-copier",
    "Ongoing",
    ProducerId(4001),
    ProducerEpoch(7),
    60_000,
    1_700_000_000_000,
    (TopicPartition("copies", 0), TopicPartition("__consumer_offsets", 12)),
)
IDLE = TransactionDescription("idle", "Empty", ProducerId(4002), ProducerEpoch(0), 60_000, -1, ())


def test_an_open_transaction_has_a_line_of_its_own() -> None:
    assert lines_of(OPEN) == (
        "Transactional id orders-copier: State=Ongoing, ProducerId=4001, ProducerEpoch=7, TimeoutMs=60000\n"
        "Since 2023-11-14T22:13:20Z in copies-0, __consumer_offsets-12"
    )
    assert lines_of(IDLE) == "Transactional id idle: State=Empty, ProducerId=4002, ProducerEpoch=0, TimeoutMs=60000"


def test_a_program_is_told_the_same() -> None:
    assert description(OPEN) == {
        "transactional_id": "orders-copier",
        "state": "Ongoing",
        "producer_id": 4001,
        "producer_epoch": 7,
        "timeout_ms": 60_000,
        "started": "2023-11-14T22:13:20Z",
        "partitions": ["copies-0", "__consumer_offsets-12"],
    }
    assert description(IDLE)["started"] is None
    hung = ProducerDescription(
        TopicPartition("copies", 0), ProducerId(4001), ProducerEpoch(7), 0, 3, 1_700_000_000_000, Offset(99)
    )
    assert hung_row(hung) == {
        "topic": "copies",
        "partition": 0,
        "producer_id": 4001,
        "producer_epoch": 7,
        "first_offset": 99,
        "last_written": "2023-11-14T22:13:20Z",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", "--hung", "--state", "Ongoing"], "--hung looks into partitions"),
        (["list", "--topic", "orders"], "--topic goes with --hung"),
        (["list", "--older-than", "soon"], "is not a length of time"),
        (["describe"], "name a transactional id, as NAME or with --transactional-id NAME"),
        (["abort"], "name a transactional id, or what hangs: --topic TOPIC --partition N --producer-id N"),
        (["abort", "copier", "--topic", "orders"], "a transactional id or a place, not both"),
        (["abort", "--topic", "orders", "--partition", "0"], "a place needs all three"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transactions", *arguments]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_every_state_can_be_asked_for() -> None:
    assert set(STATES) == {state.title for state in TransactionState}
