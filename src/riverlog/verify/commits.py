"""What is wrong with committed offsets: a register per group and partition, which must not forget.

An answer must be what some commit wrote that began before it came, and that no later commit has surely replaced: one
that began after the first was acknowledged, and was itself acknowledged before the question. One that is part of a
transaction takes effect when that is committed.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.anomalies import Anomaly, CommitBeyondEnd, CommitInvented, CommitWentBack
from riverlog.verify.evidence import Evidence, PartitionEvidence
from riverlog.verify.history import Commit, History, KnownOutcome, Lookup, Moment
from riverlog.verify.presence import skipped_by_group

_Register = tuple[str, TopicPartition]


def commit_anomalies(history: History, evidence: Evidence) -> Iterator[Anomaly]:
    """Look at every group's offsets in every partition."""
    commits: dict[_Register, list[Commit]] = defaultdict(list)
    lookups: dict[_Register, list[Lookup]] = defaultdict(list)
    for commit in history.commits:
        if _counts(commit):
            commits[commit.group, commit.partition].append(commit)
    for lookup in history.lookups:
        lookups[lookup.group, lookup.partition].append(lookup)
    partitions = {partition.name: partition for partition in evidence.partitions}
    for register in sorted({*commits, *lookups}):
        group, name = register
        partition = partitions.get(name) or PartitionEvidence(name)
        for lookup in lookups[register]:
            yield from _answer(lookup, commits[register])
            yield from _end(lookup, partition)
        known = [commit.offset for commit in commits[register] if _surely(commit, evidence)]
        known += [lookup.offset for lookup in lookups[register]]
        yield from skipped_by_group(partition, evidence, group, max(known, default=NO_OFFSET))


def _counts(commit: Commit) -> bool:
    """Return whether a commit may have taken effect."""
    if commit.outcome is KnownOutcome.REFUSED:
        return False
    transaction = commit.transaction
    if transaction is None:
        return True
    return transaction.outcome is not KnownOutcome.REFUSED and transaction.committing is not None


def _surely(commit: Commit, evidence: Evidence) -> bool:
    return commit.done is not None and (commit.transaction is None or commit.transaction in evidence.committed)


class _Effect(NamedTuple):
    """A commit that takes effect at some moment between these two."""

    offset: Offset
    began: Moment
    done: Moment | None
    """None where nobody knows whether it has."""


def _effect(commit: Commit) -> _Effect:
    transaction = commit.transaction
    if transaction is None:
        return _Effect(commit.offset, commit.began, commit.done)
    assert transaction.committing is not None
    return _Effect(commit.offset, transaction.committing, transaction.done)


def _answer(lookup: Lookup, commits: list[Commit]) -> Iterator[Anomaly]:
    effects = [_effect(commit) for commit in commits]
    before = [effect for effect in effects if effect.done is not None and effect.done < lookup.began]
    newest = max(before, key=lambda effect: effect.began, default=None)
    if lookup.offset == NO_OFFSET:
        if newest is not None:
            yield CommitWentBack(lookup.group, lookup.partition, lookup.offset, newest.offset)
        return
    sources = [effect for effect in effects if effect.offset == lookup.offset and effect.began < lookup.done]
    if not sources:
        yield CommitInvented(lookup.group, lookup.partition, lookup.offset)
    elif newest is not None and all(source.done is not None and source.done < newest.began for source in sources):
        yield CommitWentBack(lookup.group, lookup.partition, lookup.offset, newest.offset)


def _end(lookup: Lookup, partition: PartitionEvidence) -> Iterator[Anomaly]:
    ends = [reading.position for reading in partition.readings if reading.at_end and reading.began > lookup.done]
    end = min(ends, default=lookup.offset)
    if lookup.offset > end:
        yield CommitBeyondEnd(lookup.group, lookup.partition, lookup.offset, Offset(end))
