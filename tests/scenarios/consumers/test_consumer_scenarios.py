"""Play the scenarios of consumer groups: what members say, what they are answered, and what is written down."""

import shlex
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riverlog.groups.commands import ConsumerHeartbeatReply, DescribeConsumerGroups, Heartbeat, Leave, Leaver
from riverlog.groups.consumer.group import ConsumerMemberState
from riverlog.groups.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
    GroupRecord,
)
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode
from tests.support.consumers import ConsumerCoordinator, FakeClassicConsumer, FakeConsumer, at_once, named
from tests.support.scenarios import check

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))


class Stage:
    """A coordinator, its members, and the few words with which scenarios speak to them."""

    def __init__(self) -> None:
        self.coordinator = ConsumerCoordinator()
        self.modern: dict[str, FakeConsumer] = {}
        self.classic: dict[str, FakeClassicConsumer] = {}
        self.written = 0

    def play(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        options = dict(each.split("=", 1) for each in rest if "=" in each)
        plain = [each for each in rest if "=" not in each]
        said: list[str] = getattr(self, f"_{word.replace('-', '_')}")(plain, options)
        new, self.written = self.coordinator.log[self.written :], len(self.coordinator.log)
        return said + [f"+ {self._fact(fact)}" for fact in new if isinstance(fact, GroupRecord)]

    def _settings(self, plain: list[str], options: dict[str, str]) -> list[str]:
        values = {name: int(value) if value.isdigit() else value for name, value in options.items()}
        self.coordinator = ConsumerCoordinator(at_once(**values))
        return []

    def _topics(self, plain: list[str], options: dict[str, str]) -> list[str]:
        self.coordinator.change_topics(**{name: int(count) for name, count in options.items()})
        return []

    def _join(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """Join as a member that speaks the consumer protocol: its name, then topics."""
        name, *topics = plain
        member = self.modern[name] = self.coordinator.consumer(
            name, regex=options.get("regex"), instance_id=options.get("instance"), assignor=options.get("assignor")
        )
        member.topics = tuple(topics)
        member.rebalance_timeout_ms = 1000 * int(options.get("rebalance", 300))
        return self._reply(name, member.beat())

    def _subscribe(self, plain: list[str], options: dict[str, str]) -> list[str]:
        name, *topics = plain
        self.modern[name].topics = tuple(topics)
        self.modern[name].regex = options.get("regex")
        return self._reply(name, self.modern[name].beat())

    def _beat(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """Send a heartbeat; a silent one says nothing about partitions, a lost one gets no answer."""
        name, *how = plain
        if name in self.classic:
            member = self.classic[name]
            code = self.coordinator.ask(Heartbeat("g", member.id, member.generation, member.instance_id))
            return [f"{name}: {code.name}"]
        more: dict[str, Any] = {"topic_partitions": None} if "silent" in how else {}
        if "epoch" in options:
            more["member_epoch"] = int(options["epoch"])
        reply = self.modern[name].beat(answer_is_lost="lost" in how, **more)
        return [f"{name}: lost"] if "lost" in how else self._reply(name, reply)

    def _leave(self, plain: list[str], options: dict[str, str]) -> list[str]:
        (name,) = plain
        if name in self.classic:
            member = self.classic.pop(name)
            reply = self.coordinator.ask(Leave("g", (Leaver(member.id, member.instance_id),)))
            return [f"{name}: {reply.codes[0].name}"]
        return self._reply(name, self.modern.pop(name).leave())

    def _away(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """Make a static member leave for a while."""
        (name,) = plain
        return self._reply(name, self.modern.pop(name).leave(epoch=-2))

    def _restart(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """Make a static member leave for a while and come back under another id."""
        name, new_name = plain
        member = self.modern.pop(name)
        said = self._reply(name, member.leave(epoch=-2))
        member.id = new_name
        self.modern[new_name] = member
        return said + self._reply(new_name, member.beat())

    def _classic(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """Join, or join again, as a member that speaks the classic protocol, and sync."""
        (name,) = plain
        member = self.classic.setdefault(
            name, FakeClassicConsumer(self.coordinator, instance_id=options.get("instance"))
        )
        code = member.rejoin()
        if code is not ErrorCode.NONE:
            return [f"{name}: {code.name}"]
        return [f"{name}: generation {member.generation}, has {_listed(named(member.has))}"]

    def _wait(self, plain: list[str], options: dict[str, str]) -> list[str]:
        self.coordinator.pass_time(float(plain[0]))
        return []

    def _fail_over(self, plain: list[str], options: dict[str, str]) -> list[str]:
        before = self.coordinator.machine.state
        self.coordinator.fail_over()
        assert self.coordinator.machine.state == before
        return []

    def _snapshot(self, plain: list[str], options: dict[str, str]) -> list[str]:
        facts = list(self.coordinator.machine.state.records())
        copy = GroupsState()
        for fact in facts:
            copy.apply(fact)
        assert copy == self.coordinator.machine.state
        return [f"+ {self._fact(fact)}" for fact in facts]

    def _describe(self, plain: list[str], options: dict[str, str]) -> list[str]:
        (group,) = self.coordinator.ask(DescribeConsumerGroups(("g",)))
        if group.code is not ErrorCode.NONE:
            return [f"{group.code.name}: {group.message}"]
        return [f"{group.state}, epoch {group.group_epoch}, target {group.assignment_epoch}, {group.assignor_name}"] + [
            f"  {self._name(each.member_id)} epoch {each.member_epoch}"
            f"{' classic' if each.is_classic else ''}: has {_listed(named(each.assignment))},"
            f" is to have {_listed(named(each.target_assignment))}"
            for each in group.members
        ]

    def _reply(self, name: str, reply: ConsumerHeartbeatReply) -> list[str]:
        if reply.code is not ErrorCode.NONE:
            return [f"{name}: {reply.code.name}: {reply.message}"]
        if reply.member_epoch < 0:
            return [f"{name}: gone"]
        told = "" if reply.assignment is None else f", read {_listed(named(reply.assignment))}"
        return [f"{name}: epoch {reply.member_epoch}, again in {reply.heartbeat_interval_ms} ms{told}"]

    def _fact(self, fact: GroupRecord) -> str:
        kind = type(fact.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        names = [self._name(each) for each in (getattr(fact.key, "member_id", ""), _pattern(fact)) if each]
        return " ".join([kind, *names, "gone" if fact.value is None else _value(fact.value)])

    def _name(self, member_id: str) -> str:
        return next((name for name, member in self.classic.items() if member.id == member_id), member_id)


def _pattern(fact: GroupRecord) -> str:
    return str(getattr(fact.key, "regular_expression", ""))


def _listed(partitions: dict[str, list[int]] | None) -> str:
    return " ".join(f"{topic}-{index}" for topic, indexes in (partitions or {}).items() for index in indexes) or "none"


def _value(value: object) -> str:
    match value:
        case ConsumerGroupMetadataValue():
            return f"epoch {value.epoch}"
        case ConsumerGroupMemberMetadataValue():
            words = [*value.subscribed_topic_names]
            words += [f"/{value.subscribed_topic_regex}/"] if value.subscribed_topic_regex else []
            words += ["classic"] if value.classic_member_metadata else []
            return "wants " + (" ".join(words) or "nothing")
        case ConsumerGroupTargetAssignmentMetadataValue():
            return f"epoch {value.assignment_epoch}"
        case ConsumerGroupTargetAssignmentMemberValue():
            return _partitions(value.topic_partitions)
        case ConsumerGroupCurrentMemberAssignmentValue():
            state = ConsumerMemberState(value.state).name
            revoking = value.partitions_pending_revocation
            gives = f", gives up {_partitions(revoking)}" if revoking else ""
            return f"{state} epoch {value.member_epoch}: {_partitions(value.assigned_partitions)}{gives}"
        case ConsumerGroupRegularExpressionValue():
            return "matches " + (" ".join(value.topics) or "nothing")
        case GroupMetadataValue():
            return f"generation {value.generation} of {len(value.members)} members"
        case _:
            return str(value)


def _partitions(written: Any) -> str:
    by_topic: dict[UUID, frozenset[int]] = {each.topic_id: frozenset(each.partitions) for each in written}
    return _listed(named(by_topic))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_group_does_what_the_scenario_says(path: Path, rewrite: bool) -> None:
    check(path, Stage().play, rewrite=rewrite)
