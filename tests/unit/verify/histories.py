"""Short words for histories made by hand: one partition, values, and what readers found at which offset."""

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.anomalies import Anomaly
from riverlog.verify.checker import judge
from riverlog.verify.history import History, Isolation, Reading, Transaction, Write

ORDERS = TopicPartition("orders", 0)


def write(
    history: History,
    value: str,
    offset: int | None = None,
    *,
    producer: str = "p",
    transaction: Transaction | None = None,
    once: bool = True,
) -> Write:
    """Send a value; with an offset it is acknowledged there, -1 stands for a promise without a place."""
    sent = history.write(producer, ORDERS, value, transaction=transaction, once=once)
    if offset is not None:
        history.acknowledged(sent, Offset(offset))
    return sent


def read(
    history: History,
    *found: tuple[int, str],
    reader: str = "r",
    start: int = 0,
    position: int = 0,
    at_end: bool = True,
    committed: bool = False,
    group: str | None = None,
    transaction: Transaction | None = None,
) -> Reading:
    """Read from `start`, by default to the end of the partition."""
    isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
    reading = history.read_from(reader, ORDERS, Offset(start), isolation=isolation, group=group)
    history.saw(reading, [(Offset(offset), value) for offset, value in found], transaction)
    history.passed(reading, Offset(position), at_end=at_end)
    return reading


def commit(history: History, offset: int, *, told: bool = True, transaction: Transaction | None = None) -> None:
    made = history.commit("g", ORDERS, Offset(offset), transaction=transaction)
    if told:
        history.commit_acknowledged(made)


def look_up(history: History, offset: int = NO_OFFSET) -> None:
    history.looked_up("g", ORDERS, Offset(offset), began=history.moment())


def found(history: History) -> list[Anomaly]:
    return list(judge(history).anomalies)


def sentences(history: History) -> list[str]:
    return [anomaly.sentence for anomaly in found(history)]
