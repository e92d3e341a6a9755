"""Batches and questions of one producer, for tests of which transactions may begin in a partition."""

from typing import Final

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import ProducerIdentity
from riverlog.records.batch import BatchHeader, read_header
from riverlog.transactions.verification import Question, Verifications
from tests.support.reading_committed import transactional_batch

ORDERS: Final = TopicPartition("orders", 0)


def producer(epoch: int = 0) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(7), ProducerEpoch(epoch))


def header(sequence: int = 0, epoch: int = 0) -> BatchHeader:
    return read_header(transactional_batch(7, sequence, b"value", epoch=epoch))


def question(
    verifications: Verifications, *, sequence: int = 0, epoch: int = 0, adds: bool = False, knows_abortable: bool = True
) -> Question:
    begun = verifications.begin(producer(epoch), sequence, begins_epoch=adds, now_ms=100)
    assert begun is not None
    return Question(ORDERS, "copier", verifications, begun, knows_abortable)


def refused(verifications: Verifications, batch: BatchHeader, *, is_known: bool = True) -> ErrorCode:
    with pytest.raises(Refusal) as refusal:
        verifications.check(batch, is_known=is_known)
    return refusal.value.code
