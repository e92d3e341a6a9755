"""Play the scenarios of groups. Members have short names; the ids that the coordinator gives them are not shown."""

import shlex
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, assert_never
from uuid import UUID

import pytest

from riverlog.groups.commands import (
    CodesReply,
    CommitOffsets,
    CommittedOffset,
    DeleteGroups,
    DeleteOffsets,
    DescribedGroup,
    DescribeGroups,
    FetchOffsets,
    FetchOffsetsReply,
    GroupsCommand,
    Heartbeat,
    Join,
    JoinReply,
    Leave,
    Leaver,
    ListedGroup,
    ListGroups,
    MemberClient,
    OffsetToCommit,
    ProducerIdentity,
    Protocol,
    Sync,
    SyncReply,
    TopicsDeleted,
    TransactionEnded,
    Woken,
)
from riverlog.groups.records import GroupFact, GroupMetadataValue, GroupRecord, MemberMetadata, TransactionMarker
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.machine import Ticket
from tests.support.groups import Coordinator, settings_of, subscription
from tests.support.scenarios import check

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
Named = dict[str, str]


class Stage:
    """A coordinator and the few words with which scenarios speak to it."""

    def __init__(self) -> None:
        self.coordinator = Coordinator(settings_of())
        self.ids: dict[str, str] = {}  # member ids by names
        self.generations: dict[str, int] = {}  # what each member knows
        self.askers: dict[Ticket, str] = {}
        self.said = 0
        self.written = 0

    def play(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        named = dict(each.split("=", 1) for each in rest if "=" in each)
        plain = [each for each in rest if "=" not in each]
        match word:
            case "settings":
                values = {name: int(value) for name, value in named.items()}
                self.coordinator = Coordinator(settings_of(**values))
                return []
            case "wait":
                self.coordinator.pass_time(float(plain[0]))
                return [*self._heard(None), *self._noted()]
            case "fail-over":
                self.coordinator.fail_over()
                return []
            case "snapshot":
                return self._snapshot()
        asker, command = getattr(self, f"_{word}")(plain, named)
        ticket = Ticket(self.coordinator.asked + 1)
        self.askers[ticket] = asker
        self.coordinator.submit(command)
        heard = self._heard(ticket)
        waiting = [f"{asker} waits"] if self.coordinator.waits(ticket) else []
        return [*heard, *waiting, *self._noted()]

    def _heard(self, asked: Ticket | None) -> list[str]:
        """Return what was answered since the last line, to this line's asker first."""
        answers = list(self.coordinator.answers.items())
        new, self.said = answers[self.said :], len(answers)
        new.sort(key=lambda each: each[0] != asked)
        for ticket, reply in new:
            if isinstance(reply, JoinReply) and reply.code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.ids[self.askers[ticket]] = reply.member_id
        return [line for ticket, reply in new if reply is not None for line in self._reply(self.askers[ticket], reply)]

    def _noted(self) -> list[str]:
        new, self.written = self.coordinator.log[self.written :], len(self.coordinator.log)
        return [f"+ {self._fact(fact)}" for fact in new]

    def _snapshot(self) -> list[str]:
        facts = list(self.coordinator.machine.snapshot())
        assert self.coordinator.replayed(facts).state == self.coordinator.machine.state
        return [f"+ {self._fact(fact)}" for fact in facts]

    # ---- commands

    def _join(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        group, name = plain[:2]
        topics = named.get("topics", "t").split(",")
        protocol_type = named.get("type", "consumer")
        metadata = subscription(*topics) if protocol_type == "consumer" else b"opaque"
        self.coordinator.ids += 1
        command = Join(
            group,
            MemberClient(name, "/10.0.0.1"),
            UUID(int=self.coordinator.ids),
            "" if "new" in plain else self.ids.get(name, ""),
            named.get("instance"),
            protocol_type,
            tuple(Protocol(each, metadata) for each in named.get("offers", "range").split(",") if each),
            int(float(named.get("session", 45)) * 1000),
            int(float(named.get("rebalance", 300)) * 1000),
            needs_known_id="old" not in plain,
            may_skip_assignment="old" not in plain,
        )
        return name, command

    def _sync(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        group, name = plain
        instance = named.pop("instance", None)
        generation = int(named.pop("generation", self.generations.get(name, -1)))
        assignments = {self.ids.get(each, each): value.encode() for each, value in named.items()}
        return name, Sync(group, self.ids.get(name, name), generation, instance, assignments=assignments)

    def _beat(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        group, name = plain
        generation = int(named.get("generation", self.generations.get(name, -1)))
        return name, Heartbeat(group, self.ids.get(name, name), generation, named.get("instance"))

    def _leave(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        group, *names = plain
        leavers = [Leaver(self.ids.get(name, name)) for name in names]
        leavers += [Leaver("", instance) for instance in named.values()]
        return ", ".join([*names, *named.values()]), Leave(group, tuple(leavers))

    def _commit(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        """commit GROUP [MEMBER] topic-partition=offset ... [note=text] [producer=id]"""
        group, *names = plain
        name = names[0] if names else "tool"
        producer = named.pop("producer", None)
        note = named.pop("note", None)
        generation = int(named.pop("generation", self.generations.get(name, -1)))
        offsets = tuple(
            OffsetToCommit(*_partition(each), Offset(int(offset)), metadata=note) for each, offset in named.items()
        )
        return name, CommitOffsets(
            group,
            offsets,
            self.ids.get(name, "" if name == "tool" else name),
            generation,
            producer=None if producer is None else _producer(producer),
        )

    def _end(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return "coordinator", TransactionEnded(_producer(named["producer"]), committed=plain[0] == "commit")

    def _offsets(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return plain[0], FetchOffsets(plain[0], None, require_stable="stable" in plain)

    def _forget(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        group, *partitions = plain
        return group, DeleteOffsets(group, tuple(TopicPartition(*_partition(each)) for each in partitions))

    def _delete(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return ", ".join(plain), DeleteGroups(tuple(plain))

    def _drop(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return "", TopicsDeleted(frozenset(plain))

    def _list(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return "", ListGroups(frozenset(plain))

    def _describe(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return "", DescribeGroups(tuple(plain))

    def _wake(self, plain: list[str], named: Named) -> tuple[str, GroupsCommand]:
        return "", Woken()

    # ---- words for replies and facts

    def _name(self, member_id: str) -> str:
        names = [name for name, known in self.ids.items() if known == member_id]
        return names[0] if names else ("somebody who is gone" if "-" in member_id else member_id)

    def _reply(self, asker: str, reply: Any) -> list[str]:
        match reply:
            case JoinReply():
                return [f"{asker}: {self._joined(asker, reply)}"]
            case SyncReply():
                return [f"{asker}: {_code(reply.code) or 'assigned ' + (reply.assignment.decode() or 'nothing')}"]
            case ErrorCode():
                return [f"{asker}: {_code(reply) or 'alive'}"]
            case CodesReply():
                return [f"{asker}: {_code(reply.code) or _codes(reply.codes)}"]
            case FetchOffsetsReply():
                return [_code(reply.code)] if reply.code else [_offset(each) for each in reply.offsets]
            case tuple():
                return [line for group in reply for line in self._described(group)]
            case _:
                assert_never(reply)

    def _joined(self, asker: str, reply: JoinReply) -> str:
        if reply.code:
            return _code(reply.code)
        self.generations[asker] = reply.generation_id
        words = [f"generation {reply.generation_id} {reply.protocol_name}"]
        if reply.members:
            words.append("leads " + " ".join(self._name(each.member_id) for each in reply.members))
        else:
            words.append(f"follows {self._name(reply.leader)}")
        if reply.skip_assignment:
            words.append("need not assign")
        return ", ".join(words)

    def _described(self, group: ListedGroup | DescribedGroup) -> list[str]:
        if isinstance(group, ListedGroup):
            return [f"{group.group_id}: {group.type} {group.protocol_type or '-'} {group.state}"]
        head = f"{group.group_id}: {group.state} {group.protocol_type or '-'} {group.protocol_name or '-'}"
        return [head + (f" ({_code(group.code)})" if group.code else "")] + [
            f"  {self._name(each.member_id)} {each.client.id} {each.client.host}: {each.assignment.decode() or '-'}"
            for each in group.members
        ]

    def _fact(self, fact: GroupFact) -> str:
        if isinstance(fact, TransactionMarker):
            return f"marker of producer {fact.producer_id}: {'commit' if fact.committed else 'abort'}"
        assert isinstance(fact, GroupRecord)
        key = " ".join(str(getattr(fact.key, each.name)) for each in fields(fact.key))
        words = [f"{type(fact.key).__name__.removesuffix('Key')} {key}:"]
        if fact.producer_id >= 0:
            words.append(f"(producer {fact.producer_id})")
        if fact.value is None:
            words.append("gone")
        elif isinstance(fact.value, GroupMetadataValue):
            words.append(f"generation {fact.value.generation} {fact.value.protocol or '-'}")
            words += [self._member(each) for each in fact.value.members] or ["nobody"]
        else:
            words.append(str(fact.value.offset))
            words += [repr(fact.value.metadata)] if fact.value.metadata else []
        return " ".join(words)

    def _member(self, member: MemberMetadata) -> str:
        return f"{self._name(member.member_id)}={member.assignment.decode() or '-'}"


def _listed(group: ListedGroup) -> str:
    return f"{group.group_id}: {group.type} {group.protocol_type or '-'} {group.state}"


def _partition(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)


def _producer(text: str) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(int(text)), ProducerEpoch(0))


def _code(code: ErrorCode) -> str:
    return code.name if code else ""


def _codes(codes: tuple[ErrorCode, ...]) -> str:
    return " ".join(_code(each) or "done" for each in codes)


def _offset(offset: CommittedOffset) -> str:
    words = [f"{offset.topic}-{offset.partition}:", _code(offset.code) or str(offset.offset)]
    return " ".join(words + ([repr(offset.metadata)] if offset.metadata else []))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_machine_says_what_the_scenario_says(path: Path, rewrite: bool) -> None:
    play: Callable[[str], list[str]] = Stage().play
    check(path, play, rewrite=rewrite)
