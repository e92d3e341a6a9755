"""Play the scenarios of transactional ids. A producer is `id:epoch`; writers have names, and remember who they are."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

import pytest

from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.machine import Ticket
from riverlog.model.settings import NodeSettings
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.transactions.commands import (
    AddPartitions,
    BatchesReply,
    DescribeBatches,
    DescribeTransactions,
    EndBatch,
    EndTransaction,
    InitProducer,
    JoinBatch,
    ListTransactions,
    MarkersWritten,
    NeedsProducerId,
    PartitionsReply,
    ProducerReply,
    SendMarkers,
    TransactionsCommand,
    VerifyPartitions,
)
from riverlog.transactions.incarnations import BatchName
from riverlog.transactions.machine import TransactionsMachine
from riverlog.transactions.records import MemberFact, StateFact, TransactionFact
from riverlog.transactions.states import NOBODY, Transaction, TransactionState
from tests.support.scenarios import check
from tests.support.transactions import Coordinator

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
ID = "copier"
Named = dict[str, str]


class Stage:
    """A coordinator and the few words with which scenarios speak to it."""

    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.producers: dict[str, ProducerIdentity] = {}
        self.askers: dict[Ticket, tuple[str, TransactionsCommand]] = {}
        self.unwritten: list[SendMarkers] = []
        self.answered = self.written = 0
        self.next_id = 1_000

    def play(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        named = dict(each.split("=", 1) for each in rest if "=" in each)
        plain = [each for each in rest if "=" not in each]
        match word:
            case "settings":
                self.coordinator = Coordinator(NodeSettings(**{name: int(value) for name, value in named.items()}))
            case "wait":
                self.coordinator.pass_time(float(plain[0]))
            case "reload":
                self.coordinator.restart()
                self.unwritten = []
                self.coordinator.pass_time(0)
            case "markers":
                self._write_markers(named.get("id"))
            case "epoch":
                self._age(ProducerIdentity(self._producer(plain[0]).id, ProducerEpoch(int(plain[1]))))
                self.producers[plain[0]] = self.coordinator.held(ID).producer
                return []
            case "snapshot":
                return self._snapshot()
            case _:
                ticket = self._ask(plain[0] if plain else "", getattr(self, f"_{word.replace('-', '_')}")(plain, named))
                return [*self._heard(ticket), *self._outcome()]
        return [*self._heard(None), *self._outcome()]

    def _ask(self, asker: str, command: TransactionsCommand) -> Ticket:
        ticket = self.coordinator.submit(command)
        self.askers[ticket] = asker, command
        return ticket

    def _heard(self, asked: Ticket | None) -> list[str]:
        """Return what was answered since the last line; who needs a new producer id gets one and asks again."""
        lines = []
        while len(answers := list(self.coordinator.answers.items())) > self.answered:
            ticket, reply = answers[self.answered]
            self.answered += 1
            if ticket not in self.askers:
                continue
            asker, command = self.askers[ticket]
            lines += self._reply(asker, command, reply)
            if isinstance(reply, NeedsProducerId):
                assert isinstance(command, InitProducer | EndTransaction | JoinBatch)
                asked = self._ask(asker, replace(command, new_id=ProducerId(self.next_id)))
                self.next_id += 1
        if asked is not None and asked not in self.coordinator.answers:
            lines.append(f"{self.askers[asked][0]} waits")
        return lines

    def _outcome(self) -> list[str]:
        """Return what was written and what is to be done since the last line."""
        new, self.written = self.coordinator.log[self.written :], len(self.coordinator.log)
        sent, self.coordinator.markers = self.coordinator.markers, []
        counted = list(self.coordinator.ended.elements())
        self.coordinator.ended.clear()
        self.unwritten += sent
        return [
            *(f"+ {_fact(fact)}" for fact in new),
            *(f"! {_markers(each)}" for each in sent),
            *(f"! counted as {each.value}" for each in counted),
        ]

    def _write_markers(self, transactional_id: str | None) -> None:
        written = [each for each in self.unwritten if transactional_id in (None, each.transactional_id)]
        for each in written:
            self.unwritten.remove(each)
            self.coordinator.submit(MarkersWritten(each.transactional_id, each.producer))

    def _age(self, producer: ProducerIdentity) -> None:
        """Remember another epoch, as if many transactions had gone by."""
        fact = TransactionFact(ID, self.coordinator.held(ID)._replace(producer=producer))
        self.coordinator.machine.apply(fact)
        self.coordinator.log.append(fact)
        self.written += 1

    def _snapshot(self) -> list[str]:
        facts = list(self.coordinator.machine.snapshot())
        copy = TransactionsMachine(self.coordinator.settings)
        for fact in facts:
            copy.apply(fact)
        assert (copy.state, copy.pools) == (self.coordinator.machine.state, self.coordinator.machine.pools)
        return [f"+ {_fact(fact)}" for fact in facts]

    def _producer(self, name: str) -> ProducerIdentity:
        """Return who a writer takes itself for, or the producer that is named as `id:epoch`."""
        if ":" not in name:
            return self.producers[name]
        producer_id, epoch = name.split(":")
        return ProducerIdentity(ProducerId(int(producer_id)), ProducerEpoch(int(epoch)))

    # ---- commands

    def _init(self, plain: list[str], named: Named) -> TransactionsCommand:
        expected = self._producer(plain[0]) if "again" in plain else None
        return InitProducer(named.get("id", ID), int(float(named.get("timeout", 60)) * 1000), expected)

    def _add(self, plain: list[str], named: Named) -> TransactionsCommand:
        producer = self._producer(plain[0])
        return AddPartitions(named.get("id", ID), producer, _partitions(plain[1:]), _version(plain))

    def _verify(self, plain: list[str], named: Named) -> TransactionsCommand:
        return VerifyPartitions(named.get("id", ID), self._producer(plain[0]), _partitions(plain[1:]))

    def _commit(self, plain: list[str], named: Named) -> TransactionsCommand:
        return EndTransaction(named.get("id", ID), self._producer(plain[0]), True, _version(plain))

    def _abort(self, plain: list[str], named: Named) -> TransactionsCommand:
        return EndTransaction(named.get("id", ID), self._producer(plain[0]), False, _version(plain))

    def _join(self, plain: list[str], named: Named) -> TransactionsCommand:
        """join WRITER for=OWNER batch=0 task=0 attempt=0"""
        beside = tuple(self._producer(each) for each in named.get("beside", "").split(",") if each)
        owner, batch = self._producer(named["for"]), _batch(named)
        return JoinBatch(ID, owner, batch, int(named.get("task", 0)), int(named.get("attempt", 0)), beside)

    def _commit_batch(self, plain: list[str], named: Named) -> TransactionsCommand:
        """commit-batch OWNER MEMBER ... batch=0 marker=text"""
        owner, *members = map(self._producer, plain)
        return EndBatch(ID, owner, _batch(named), True, tuple(members), named.get("marker", "").encode())

    def _abort_batch(self, plain: list[str], named: Named) -> TransactionsCommand:
        return EndBatch(ID, self._producer(plain[0]), _batch(named), False)

    def _batches(self, plain: list[str], named: Named) -> TransactionsCommand:
        return DescribeBatches(ID, named.get("run", "r"))

    def _describe(self, plain: list[str], named: Named) -> TransactionsCommand:
        return DescribeTransactions(tuple(plain) or (ID,))

    def _list(self, plain: list[str], named: Named) -> TransactionsCommand:
        return ListTransactions(frozenset(TransactionState[each.upper()] for each in plain))

    # ---- words for replies

    def _reply(self, asker: str, command: TransactionsCommand, reply: Any) -> list[str]:
        match reply:
            case NeedsProducerId():
                return [f"{asker} needs a producer id"]
            case ProducerReply(code, producer):
                if code:
                    return [f"{asker}: {code.name}"]
                if producer == NOBODY:
                    return [f"{asker}: done"]
                self.producers[asker] = producer
                return [f"{asker}: is {_name(producer)}"]
            case PartitionsReply(codes):
                return [f"{asker}: " + " ".join(code.name if code else "done" for code in codes)]
            case BatchesReply():
                is_open = "none" if reply.open_batch is None else str(reply.open_batch)
                return (
                    [reply.code.name]
                    if reply.code
                    else [f"committed {reply.committed} {reply.marker.decode()!r}, open {is_open}"]
                )
            case tuple() if isinstance(command, DescribeTransactions):
                described = zip(command.transactional_ids, reply, strict=True)
                return [f"{name}: {_transaction(held) if held else 'unknown'}" for name, held in described]
            case tuple():
                return [f"{name}: {held.state.title}" for name, held in reply]
            case _:
                raise AssertionError(reply)


def _partitions(words: list[str]) -> tuple[TopicPartition, ...]:
    split = [each.rpartition("-") for each in words if each != "classic"]
    return tuple(TopicPartition(topic, int(index)) for topic, _, index in split)


def _version(words: list[str]) -> TransactionVersion:
    return TransactionVersion.CLASSIC if "classic" in words else TransactionVersion.EPOCH_PER_TRANSACTION


def _batch(named: Named) -> BatchName:
    return BatchName(named.get("run", "r"), int(named.get("batch", 0)))


def _name(producer: ProducerIdentity) -> str:
    return f"{producer.id}:{producer.epoch}"


def _listed(partitions: Any) -> str:
    return " ".join(f"{topic}-{index}" for topic, index in sorted(partitions))


def _fact(fact: StateFact) -> str:
    match fact:
        case TransactionFact(transactional_id, held):
            return f"{transactional_id}: {_transaction(held) if held else 'gone'}"
        case MemberFact(name, None):
            return f"{name.transactional_id}, member {name.producer_id}: gone"
        case MemberFact(name, member) if member is not None:
            words = [
                f"{name.transactional_id}, member {name.producer_id}: {member.state.name.title()}",
                _name(member.producer),
                f"batch {member.batch.number} task {member.task} attempt {member.attempt}",
                _listed(member.partitions),
            ]
            return " ".join(filter(None, words))
        case _:
            assert_never(fact)


def _transaction(held: Transaction) -> str:
    words = [held.state.title, _name(held.producer)]
    words += [_listed(held.partitions)] if held.partitions else []
    words += [f"(was {_name(held.last)})"] if held.last.epoch >= 0 else []
    words += [f"(then {held.next_producer_id}:0)"] if held.next_producer_id >= 0 else []
    if held.shared is not None:
        last = held.shared.incarnations[-1]
        words.append(f"batch {last.opened} {'is open' if held.shared.is_open else 'is not open'}")
        words.append(f"({last.committed} committed)")
    return " ".join(words)


def _markers(sent: SendMarkers) -> str:
    decision = "commit" if sent.committed else "abort"
    return f"{decision} markers of {_name(sent.producer)} to {_listed(sent.partitions)}"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_machine_says_what_the_scenario_says(path: Path, rewrite: bool) -> None:
    check(path, Stage().play, rewrite=rewrite)
