"""Play the scenarios of one partition that asks the coordinator before a transaction begins in it (KIP-890).

Batches are named by their producer, `id:epoch`, and sequence. What waits for an answer comes again when it is there.
"""

import shlex
from pathlib import Path

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import ProducerIdentity
from riverlog.records.batch import BatchHeader, read_header
from riverlog.transactions.verification import Question, Verifications, Verified
from tests.support.reading_committed import transactional_batch
from tests.support.scenarios import check

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
Batch = tuple[str, int, bool]  # producer, sequence, by the rules of version 2


class Stage:
    """A partition as Produce uses it, with the coordinator's answers given by hand."""

    def __init__(self) -> None:
        self.verifications = Verifications()
        self.open: dict[int, int] = {}  # the epoch of the transaction that each producer id has open here
        self.known: set[int] = set()
        self.questions: dict[str, Question] = {}  # by producer: those on their way
        self.waiting: list[tuple[Question, Batch]] = []
        self.now_ms = 0

    def play(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        match word:
            case "batch":
                name, sequence = rest[:2]
                return self._append((name, int(sequence), "classic" not in rest))
            case "answer":
                return self._answer(self.questions[rest[0]], ErrorCode[rest[1]])
            case "marker":
                self.verifications.end(ProducerId(int(rest[0])))
                return [f"the transaction of {rest[0]} ends"] if self.open.pop(int(rest[0]), None) is not None else []
            case "expire":
                self.verifications.expire(self.now_ms + 1)
                return []
        raise AssertionError(line)

    def _append(self, batch: Batch) -> list[str]:
        name, sequence, adds = batch
        header = _header(name, sequence)
        if self.open.get(header.producer_id) == header.producer_epoch:
            return [f"{name} {sequence}: appended"]
        question = self._question(name, header, adds)
        if question is not None and not question.is_answered:
            is_asked = any(each is question for each, _ in self.waiting)
            self.verifications.wait(question.verification)
            self.waiting.append((question, batch))
            return [f"{name} {sequence}: waits"] + ([] if is_asked else [f"! asks whether {name} may begin"])
        try:
            self.verifications.check(header, is_known=header.producer_id in self.known)
        except Refusal as refusal:
            return [f"{name} {sequence}: {refusal.code.name}"]
        self.verifications.end(ProducerId(header.producer_id))
        self.open[header.producer_id] = header.producer_epoch
        self.known.add(header.producer_id)
        return [f"{name} {sequence}: appended, begins a transaction"]

    def _question(self, name: str, header: BatchHeader, adds: bool) -> Question | None:
        producer = ProducerIdentity(ProducerId(header.producer_id), ProducerEpoch(header.producer_epoch))
        self.now_ms += 1
        begun = self.verifications.begin(producer, header.base_sequence, begins_epoch=adds, now_ms=self.now_ms)
        if begun is None or begun.is_verified:
            return None
        known = self.questions.get(name)
        if known is None or known.verification is not begun:
            known = Question(TopicPartition("t", 0), "copier", self.verifications, begun, knows_abortable=adds)
            self.questions[name] = known
        return known

    def _answer(self, question: Question, code: ErrorCode) -> list[str]:
        answer = question.settle(code)
        heard = "yes" if isinstance(answer, Verified) else f"no, {answer.code.name}"
        lines = [f"the partition hears {heard}"]
        back = [batch for each, batch in self.waiting if each is question]
        self.waiting = [each for each in self.waiting if each[0] is not question]
        for batch in back:
            lines += self._append(batch)
            self.verifications.leave(question.verification)
        return lines


def _header(name: str, sequence: int) -> BatchHeader:
    producer_id, epoch = map(int, name.split(":"))
    return read_header(transactional_batch(producer_id, sequence, b"value", epoch=epoch))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_partition_does_what_the_scenario_says(path: Path, rewrite: bool) -> None:
    check(path, Stage().play, rewrite=rewrite)
