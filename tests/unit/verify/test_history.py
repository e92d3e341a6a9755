"""What is noted, and when."""

from riverlog.model.ids import Offset
from riverlog.verify.history import History, Isolation, KnownOutcome
from tests.unit.verify.histories import ORDERS


def test_moments_follow_one_another() -> None:
    history = History()
    sent = history.write("p", ORDERS, "a")
    assert (sent.outcome, sent.done) == (KnownOutcome.UNKNOWN, None)
    reading = history.read_from("r", ORDERS, Offset(0))
    history.acknowledged(sent, Offset(0))
    history.saw(reading, [(Offset(0), "a")])
    assert sent.done is not None
    assert reading.began < sent.done < reading.sightings[0].moment


def test_a_reading_knows_how_far_it_came() -> None:
    history = History()
    reading = history.read_from("r", ORDERS, Offset(3), isolation=Isolation.READ_COMMITTED)
    history.saw(reading, [(Offset(5), "a")])
    assert reading.position == 6
    history.passed(reading, Offset(4))
    assert (reading.position, reading.at_end) == (6, False)
    history.passed(reading, Offset(8), at_end=True)
    history.passed(reading, Offset(9))
    assert (reading.position, reading.at_end) == (9, True)


def test_a_transaction_remembers_what_it_read() -> None:
    history = History()
    transaction = history.begin("t")
    history.saw(history.read_from("t", ORDERS, Offset(0)), [(Offset(0), "a")], transaction)
    assert transaction.read == [(ORDERS, "a")]
    assert transaction.name == "t/0"
