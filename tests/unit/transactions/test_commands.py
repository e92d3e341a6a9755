from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER
from riverlog.transactions.commands import EndTransaction, InitProducer, ProducerReply
from riverlog.transactions.states import NOBODY
from tests.support.transactions import producer_of


def test_a_refusal_names_no_producer() -> None:
    assert ProducerReply(ErrorCode.PRODUCER_FENCED).producer == NOBODY


def test_commands_bring_no_id_unless_they_were_asked_to() -> None:
    assert InitProducer("x", 1).new_id == NO_PRODUCER
    assert EndTransaction("x", producer_of(1, 1), committed=True).new_id == NO_PRODUCER
