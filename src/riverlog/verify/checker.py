"""The judge of histories: what contradicts what.

    verdict = judge(history)
    assert verdict.clean, verdict.anomalies

It knows only what clients know. A record is *promised* once it was acknowledged, in a transaction once that is
committed; it is *there* from when somebody was given it. Outcomes that are unknown accuse nobody: such a record may be
there or not, but all readers must agree. Gaps between offsets are no accusation, since transactions leave marks there.
The same history always gets the same verdict.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from riverlog.verify.anomalies import KINDS, Anomaly, TornTransaction
from riverlog.verify.commits import commit_anomalies
from riverlog.verify.cycles import cycles
from riverlog.verify.evidence import Evidence, gather
from riverlog.verify.history import History, KnownOutcome, Transaction, Write
from riverlog.verify.presence import Missing, missing_records
from riverlog.verify.records import record_anomalies


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, and in how much."""

    anomalies: tuple[Anomaly, ...]
    written: int
    acknowledged: int
    refused: int
    aborted: int
    """Records of transactions that were aborted, whatever was said about each."""
    unknown: int
    seen: int
    readings: int
    commits: int
    lookups: int
    transactions: int

    @property
    def clean(self) -> bool:
        return not self.anomalies

    @property
    def counts(self) -> dict[str, int]:
        """Count the anomalies of each kind that was found, by its name."""
        found = Counter(type(anomaly) for anomaly in self.anomalies)
        return {kind.name(): found[kind] for kind in KINDS if found[kind]}


def judge(history: History) -> Verdict:
    """Find every anomaly, ordered by kind and then by place."""
    order = {kind: number for number, kind in enumerate(KINDS)}
    found = sorted(_anomalies(history), key=lambda anomaly: order[type(anomaly)])
    aborted = sum(_is_aborted(write) for write in history.writes)
    outcomes = Counter(_outcome(write) for write in history.writes if not _is_aborted(write))
    return Verdict(
        anomalies=tuple(dict.fromkeys(found)),
        written=len(history.writes),
        acknowledged=outcomes[KnownOutcome.DONE],
        refused=outcomes[KnownOutcome.REFUSED],
        aborted=aborted,
        unknown=outcomes[KnownOutcome.UNKNOWN],
        seen=sum(len(reading.sightings) for reading in history.readings),
        readings=len(history.readings),
        commits=sum(commit.outcome is KnownOutcome.DONE for commit in history.commits),
        lookups=len(history.lookups),
        transactions=len(history.transactions),
    )


def _is_aborted(write: Write) -> bool:
    return write.transaction is not None and write.transaction.outcome is KnownOutcome.REFUSED


def _outcome(write: Write) -> KnownOutcome:
    """Return how a write ended: its transaction answers for it where nobody else does."""
    if write.outcome is KnownOutcome.UNKNOWN and write.transaction is not None:
        return write.transaction.outcome
    return write.outcome


def _anomalies(history: History) -> Iterator[Anomaly]:
    evidence = gather(history)
    missing: list[Missing] = []
    for partition in evidence.partitions:
        yield from record_anomalies(partition)
        gone, problems = missing_records(partition, evidence)
        missing += gone
        yield from problems
    yield from commit_anomalies(history, evidence)
    yield from _torn(evidence, missing)
    yield from cycles(evidence)


def _torn(evidence: Evidence, missing: Iterable[Missing]) -> Iterator[TornTransaction]:
    """Find transactions of which a part is missing and a part is not."""
    gone: dict[Transaction, list[str]] = {}
    for partition, value in missing:
        write = partition.writes.get(value)
        if write is not None and write.transaction in evidence.committed:
            gone.setdefault(write.transaction, []).append(value)
    for transaction, values in gone.items():
        kept = [value for value in evidence.seen_of.get(transaction, ()) if value not in values]
        if kept:
            yield TornTransaction(transaction.name, tuple(kept), tuple(values))
