"""Carries out a plan: producers, readers and an administrator around a machine that has the plan's troubles.

The clients are riverlog's own and live through every crash. After each step the node's offsets are compared with what
they were. In the end all trouble stops, the power is lost once more, and everything is read from the beginning. All
that happens goes into the trace, whose hash is the same for every run of the same plan.
"""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, assert_never

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import CorruptRecords, KafkaError, OffsetOutOfRange
from riverlog.client.fetched import ConsumerRecord
from riverlog.groups.state import GroupsState
from riverlog.log.checkpoint import decode_offsets
from riverlog.metadata.image import OFFSETS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.node import Node
from tests.simulation import plan as plans
from tests.simulation.group_ledger import GroupLedger
from tests.simulation.ledger import COMPACTED_TOPIC, Label, Ledger
from tests.simulation.machine import ADDRESS, Machine
from tests.simulation.members import GROUPS, Member, group_of
from tests.simulation.plan import Plan
from tests.support.disk import Crashed
from tests.support.virtual_time import run

EXACTLY_ONCE: Final = frozenset({0})
"""Producers that are idempotent; the second waits for durability without being so, the third does not even wait."""
FOR_GOOD: Final = frozenset({0, 1})
COMPACTED: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.bytes": "1024"}
DELIVERY_MS: Final = 8_000
SETTLE_SECONDS_MAX: Final = 60.0
GROUP_ALONE: Final = "alone"
"""The group that never has a member."""
CATCH_UP_SECONDS_MAX: Final = 45.0
REPLAY_EVERY: Final = 8
"""After so many steps the state of the groups is compared with the replay of their topic."""
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")


@dataclass
class Outcome:
    """What came of a plan."""

    plan: Plan
    trace_hash: str = ""
    violations: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def simulate(plan: Plan, *, keep_trace: bool = False) -> Outcome:
    """Run a plan on virtual time."""
    return run(_Run(plan, keep_trace=keep_trace).all())


@dataclass
class _Topic:
    """A topic as its users know it."""

    name: str
    incarnation: int = 0
    partitions: int = 0  # 0 while there is none
    configs: dict[str, str] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sending: set["asyncio.Task[None]"] = field(default_factory=set)
    reader: "asyncio.Task[None] | None" = None


class _Run:
    def __init__(self, plan: Plan, *, keep_trace: bool) -> None:
        self._plan = plan
        self._outcome = Outcome(plan)
        self._keep_trace = keep_trace
        self._hash = hashlib.sha256()
        self._durable = plan.settings["durability"] == "fsync"
        self._ledger = Ledger(self._say, durable=self._durable)
        self._topics = [_Topic(f"topic{number}") for number in range(plans.TOPICS)]
        self._topics[plans.COMPACTED].name = COMPACTED_TOPIC
        self._tasks: set[asyncio.Task[None]] = set()
        self._clusters: set[str] = set()
        self._group_ledger = GroupLedger(self._ledger.blame, durable=self._durable)
        self._members: dict[int, Member] = {}
        self._lives_of_members = 0
        self._committed_alone: Counter[TopicPartition] = Counter()
        self._has_groups = False
        self._loop: asyncio.AbstractEventLoop
        self._machine: Machine
        self._producers: list[Producer]

    async def all(self) -> Outcome:
        """Run the plan from the first start to the last read."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._unhandled)
        machine = self._machine = Machine(self._plan.seed, self._plan.settings, self._ledger.blame)
        machine.on_start = self._started
        machine.on_power_lost = self._power_lost
        await self._open_clients()
        for number, step in enumerate(self._plan.steps):
            await asyncio.sleep(step.after_seconds)
            self._say(str(step.action))
            await self._act(step.action)
            self._watch()
            if number % REPLAY_EVERY == 0:
                self._compare_with_replay()
        try:
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await self._settle()
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await self._read_back()
        except KafkaError as error:
            self._ledger.blame(f"the node does not come back: {error}")
        except TimeoutError:
            waiting = sorted(task.get_coro().__qualname__ for task in self._tasks)
            self._ledger.blame(f"it does not come to an end; still waiting: {waiting}")
        await machine.shut_down()
        return self._closed()

    def _closed(self) -> Outcome:
        outcome, machine, ledger = self._outcome, self._machine, self._ledger
        self._say(f"end after {machine.lives} lives")
        outcome.trace_hash = self._hash.hexdigest()
        outcome.violations = ledger.violations
        outcome.counts.update(
            steps=len(self._plan.steps),
            lives=machine.lives,
            crashes=machine.crashes,
            kills=machine.kills,
            acknowledged=ledger.records_promised,
            shown=ledger.records_shown,
            commits=self._group_ledger.commits_acknowledged,
            disk_calls=machine.disk.steps,
        )
        return outcome

    def _say(self, event: str) -> None:
        line = f"{self._loop.time():.6f} {event}"
        self._hash.update(line.encode())
        if self._keep_trace:
            self._outcome.trace.append(line)

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(
            error, Crashed | asyncio.CancelledError
        ):  # both are only ever what became of a node that is gone
            self._ledger.blame(f"unhandled: {_ADDRESS.sub('…', context['message'])}: {error!r}")

    def _watch(self) -> None:
        node = self._machine.node
        if node is not None:
            known = {topic.name: topic.incarnation for topic in self._topics if topic.partitions}
            self._ledger.watch(node._replicas.opened(), known)

    def _power_lost(self) -> None:
        self._say("power lost")
        self._ledger.power_lost()
        self._group_ledger.power_lost()

    def _started(self, node: Node) -> None:
        """Look at a node that has just started: what was only forgotten is no damage, and its name stays."""
        self._say(f"started for the {self._machine.lives}. time")
        self._clusters.add(node.cluster_id)
        if len(self._clusters) > 1:
            self._ledger.blame("the cluster has another id than before")
        (home,) = node._homes
        if home.directory.clean and not self._machine.was_clean:
            self._ledger.blame("the node takes a crash for a stop in good order")
        if self._machine.was_clean:
            self._ledger.stopped_cleanly()
        self._machine.was_clean = False
        for damage in home.directory.damage:
            self._ledger.blame(f"damage: {damage}")
        if self._has_groups:
            self._spawn(self._audit())

    # -- steps

    async def _act(self, action: plans.Action) -> None:
        machine = self._machine
        match action:
            case plans.Produce():
                self._produce(action)
            case plans.CreateTopic():
                self._spawn(self._create_topic(self._topics[action.topic], action.partitions))
            case plans.DeleteTopic():
                self._spawn(self._delete_topic(self._topics[action.topic]))
            case plans.DeleteRecords():
                self._spawn(self._delete_records(self._topics[action.topic], action))
            case plans.AlterTopic():
                self._spawn(self._alter_topic(self._topics[action.topic], action))
            case plans.PowerLoss(0):
                machine.lose_power()
            case plans.PowerLoss():
                machine.crash_after(action.disk_steps)
            case plans.Kill():
                machine.kill()
            case plans.Restart():
                self._spawn(machine.restart())
            case plans.FailDisk():
                machine.disk.fail(action.after, action.error, on=action.kinds, lasting=action.lasting)
            case plans.Rot():
                self._rot(self._topics[action.topic], action)
            case plans.Heal():
                machine.heal()
            case plans.SlowDisk():
                machine.workers.seconds_max = action.seconds_max
            case plans.CutConnections():
                machine.network.cut(machine.random)
            case plans.JumpClock():
                machine.clock.ahead_ms += action.ahead_ms
            case plans.Join():
                self._join(action.member)
            case plans.Leave() if (member := self._members.pop(action.member, None)) is not None:
                self._spawn(member.leave())
            case plans.Vanish() if (member := self._members.pop(action.member, None)) is not None:
                self._spawn(member.vanish())
            case plans.CommitAlone():
                self._spawn(self._commit_alone(self._topics[action.topic], action.partition))
            case plans.Leave() | plans.Vanish() | plans.Wait():
                pass
            case _:
                assert_never(action)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open_clients(self) -> None:
        await self._machine.serving()
        ports = self._machine.ports
        timing: dict[str, Any] = {"delivery_timeout_ms": DELIVERY_MS, "request_timeout_ms": 2_000, "ports": ports}
        self._producers = [
            Producer(ADDRESS, client_id="once", linger_ms=1, batch_bytes_max=900, **timing),
            Producer(ADDRESS, client_id="durable", idempotent=False, compression="lz4", batch_bytes_max=900, **timing),
            Producer(ADDRESS, client_id="loose", acks=1, batch_bytes_max=600, **timing),
        ]
        for producer in self._producers:
            await producer.start()

    def _produce(self, action: plans.Produce) -> None:
        topic = self._topics[action.topic]
        if not topic.partitions or topic.lock.locked():
            return
        task = self._spawn(self._send(topic, action.partition % topic.partitions, action.producer, action.count))
        topic.sending.add(task)
        task.add_done_callback(topic.sending.discard)

    async def _send(self, topic: _Topic, partition: int, number: int, count: int) -> None:
        ledger = self._ledger.partition(topic.name, topic.incarnation, partition)
        producer = self._producers[number]
        crashes = self._machine.crashes
        sent = []
        for _ in range(count):
            label = Label(topic.name, topic.incarnation, partition, number, ledger.sent)
            ledger.sent += 1
            sent.append((label, producer.send_soon(topic.name, label.value(), key=label.key(), partition=partition)))
        for label, delivery in sent:
            try:
                where = await delivery
            except KafkaError as error:
                self._say(f"{label} not acknowledged: {error.code.name}")
                self._outcome.counts["unacknowledged"] += 1
                continue
            self._say(f"{label} at {where.offset}")
            if (number in FOR_GOOD and self._durable) or self._machine.crashes == crashes:
                self._ledger.acknowledged(label, where.offset, for_good=number in FOR_GOOD)

    def _rot(self, topic: _Topic, action: plans.Rot) -> None:
        """Change a bit of what is closed and was synced: anything else may be a torn write.

        In gaps that compaction left a wrong offset is not noticed.
        """
        if not topic.partitions or topic.lock.locked() or topic.name == COMPACTED_TOPIC:
            return
        disk = self._machine.disk
        partition = TopicPartition(topic.name, action.partition % topic.partitions)
        path, folder = "/data/recovery-point-offset-checkpoint", f"/data/{partition}"
        known = decode_offsets(disk.content(path) or b"0\n0\n", path)
        if not disk.exists(folder):
            return
        names = [name for name in disk.list(folder) if name.endswith((".log", ".index", ".timeindex"))]
        bases = sorted(int(name[:20]) for name in names if name.endswith(".log"))
        closed = bases[: max(0, sum(base <= known.get(partition, 0) for base in bases) - 1)]
        files = [f"{folder}/{name}" for name in names if int(name[:20]) in closed]
        bit = int(action.share * 8 * sum(len(disk.content(file)) for file in files))
        for file in files:
            size = len(disk.content(file))
            if bit < 8 * size:
                disk.damage(file, bit // 8, 1 << bit % 8)
                self._ledger.partition(topic.name, topic.incarnation, partition.partition).rotten = True
                self._outcome.counts["rotten"] += 1
                self._say(f"{file} rots at {bit // 8}")
                return
            bit -= 8 * size

    async def _create_topic(self, topic: _Topic, partitions: int) -> None:
        async with topic.lock:
            if not topic.partitions:
                await self._create(topic, partitions)

    async def _create(self, topic: _Topic, partitions: int) -> None:
        async def create(admin: Admin) -> None:
            try:
                configs = COMPACTED if topic.name == COMPACTED_TOPIC else {}
                await admin.create_topic(topic.name, partitions=partitions, configs=configs)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

        await self._insist(create)
        topic.incarnation += 1
        topic.partitions = partitions
        topic.configs = {}
        self._say(f"{topic.name} created")
        topic.reader = self._loop.create_task(self._read_on(topic, topic.incarnation, partitions))

    async def _delete_topic(self, topic: _Topic) -> None:
        async with topic.lock:
            if not topic.partitions:
                return
            partitions, topic.partitions = topic.partitions, 0
            if topic.sending:
                await asyncio.wait(set(topic.sending))
            await self._end_reader(topic)

            async def delete(admin: Admin) -> None:
                try:
                    await admin.delete_topics(topic.name)
                except KafkaError as error:
                    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise

            await self._insist(delete)
            self._say(f"{topic.name} deleted")
            await self._create(topic, partitions)

    async def _delete_records(self, topic: _Topic, action: plans.DeleteRecords) -> None:
        async with topic.lock:
            if not topic.partitions or topic.name == COMPACTED_TOPIC:
                return
            index = action.partition % topic.partitions
            ledger = self._ledger.partition(topic.name, topic.incarnation, index)
            before = int(ledger.high_watermark * action.share)
            ledger.given_up = max(ledger.given_up, before)

            async def delete(admin: Admin) -> None:
                try:
                    await admin.delete_records({TopicPartition(topic.name, index): before})
                except KafkaError as error:
                    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise
                    return  # what was to be deleted is lost already
                if self._durable:
                    ledger.deleted = max(ledger.deleted, before)
                self._say(f"{topic.name}-{index} deleted below {before}")

            await self._insist(delete)

    async def _alter_topic(self, topic: _Topic, action: plans.AlterTopic) -> None:
        async with topic.lock:
            if not topic.partitions:
                return
            if action.setting.startswith("retention."):
                for index in range(topic.partitions):
                    self._ledger.partition(topic.name, topic.incarnation, index).may_expire = True
            await self._insist(lambda admin: admin.alter_configs({action.setting: action.value}, topic=topic.name))
            topic.configs[action.setting] = action.value

    async def _insist(self, ask: Callable[[Admin], Awaitable[None]]) -> None:
        """Ask until it is done: an administrator who does not give up."""
        while True:
            await self._machine.serving()
            try:
                async with Admin(ADDRESS, ports=self._machine.ports, timeout_ms=1_500) as admin:
                    await ask(admin)
                return
            except KafkaError as error:
                self._say(f"admin: {error.code.name}")
                await asyncio.sleep(0.05)

    # -- readers

    async def _read_on(self, topic: _Topic, incarnation: int, partitions: int) -> None:
        """Read a topic from the beginning, for as long as it lives, across all that happens to the node."""
        positions = dict.fromkeys(range(partitions), 0)
        while True:
            await self._machine.serving()
            try:
                await self._read_for_a_while(topic, incarnation, positions)
            except KafkaError as error:
                self._say(f"reader of {topic.name}: {error.code.name}")
                await asyncio.sleep(0.02)

    async def _read_for_a_while(self, topic: _Topic, incarnation: int, positions: dict[int, int]) -> None:
        ports = self._machine.ports
        names = {index: TopicPartition(topic.name, index) for index in positions}
        async with Consumer(ADDRESS, ports=ports, auto_offset_reset="none", request_timeout_ms=1_500) as consumer:
            consumer.assign(names.values())
            for index, position in positions.items():
                await consumer.seek(names[index], position)
            while True:
                try:
                    records = await consumer.poll(timeout_ms=400)
                except OffsetOutOfRange as error:
                    await self._skip_deleted(consumer, error.partition, positions)
                    continue
                for record in records:
                    self._show(topic, incarnation, record.partition, record.offset, record.key, record.value)
                    gap = record.offset - positions[record.partition]
                    if gap < 0 or (gap and topic.name != COMPACTED_TOPIC):
                        self._ledger.blame(
                            f"{topic.name}-{record.partition}: a reader at {positions[record.partition]} "
                            f"was given {record.offset}"
                        )
                    positions[record.partition] = record.offset + 1

    async def _skip_deleted(self, consumer: Consumer, partition: TopicPartition, positions: dict[int, int]) -> None:
        """Go to the first record that is left; a reader whose position is behind all records was shown too much."""
        (start,) = (await consumer.beginning_offsets([partition])).values()
        (end,) = (await consumer.end_offsets([partition])).values()
        position = positions[partition.partition]
        if position > end and self._durable:
            self._ledger.blame(f"{partition}: a reader stands at {position}, but the log ends at {end}")
        positions[partition.partition] = min(max(start, position), end)
        await consumer.seek(partition, positions[partition.partition])

    def _show(
        self, topic: _Topic, incarnation: int, index: int, offset: int, key: bytes | None, value: bytes | None
    ) -> Label | None:
        label = self._ledger.show(topic.name, index, offset, key, value)
        if label is not None and label.incarnation != incarnation:
            self._ledger.blame(f"{label} was read from incarnation {incarnation}")
        self._say(f"{topic.name}-{index} shows {offset} {label}")
        return label

    async def _end_reader(self, topic: _Topic) -> None:
        if topic.reader is not None:
            topic.reader.cancel()
            await asyncio.wait([topic.reader])
            if not topic.reader.cancelled() and (error := topic.reader.exception()) is not None:
                raise error
            topic.reader = None

    # -- groups

    def _join(self, number: int) -> None:
        if not self._has_groups:
            self._has_groups = True
            small = {"segment.bytes": "8192", "min.cleanable.dirty.ratio": "0"}
            self._spawn(self._insist(lambda admin: admin.alter_configs(small, topic=OFFSETS_TOPIC)))
        if number in self._members:
            return
        self._lives_of_members += 1
        self._members[number] = Member(
            self._machine,
            self._group_ledger,
            [topic.name for topic in self._topics],
            number=number,
            random=Random(f"{self._plan.seed} member {self._lives_of_members}"),
            show=self._show_to_member,
            say=self._say,
        )

    def _show_to_member(self, record: ConsumerRecord) -> None:
        topic = next(topic for topic in self._topics if topic.name == record.topic)
        self._show(topic, 1, record.partition, record.offset, record.key, record.value)

    async def _commit_alone(self, topic: _Topic, index: int) -> None:
        async with topic.lock:
            if not topic.partitions:
                return
            partition = TopicPartition(topic.name, index % topic.partitions)
            self._committed_alone[partition] += 1
            offsets = {partition: self._committed_alone[partition]}

            async def commit(admin: Admin) -> None:
                asked_after = self._group_ledger.power_losses
                await admin.alter_group_offsets(GROUP_ALONE, offsets)
                self._say(f"{GROUP_ALONE} committed {offsets}")
                self._group_ledger.acknowledged(GROUP_ALONE, offsets, asked_after=asked_after)

            await self._insist(commit)

    async def _audit(self) -> None:
        """Ask how far the groups have come: not less far than they were told."""
        for group in (*GROUPS, GROUP_ALONE):

            async def ask(admin: Admin, group: str = group) -> None:
                before = self._group_ledger.floors(group)
                committed = await admin.group_offsets(group)
                self._group_ledger.answered(group, before, {each: at.offset for each, at in committed.items()})

            await self._insist(ask)

    def _compare_with_replay(self) -> None:
        """The state of every coordinator whose decisions are all committed is what its topic says."""
        node = self._machine.node
        for coordinator in () if node is None else list(node._groups._coordinators.values()):
            if not coordinator.loaded or not coordinator._coordinator.settled:
                continue
            replayed = GroupsState()
            with self._machine.looking():
                try:
                    for fact in coordinator._log.replay():
                        replayed.apply(fact)
                except (OSError, Refusal):
                    continue  # the disk is gone, and will tell
            self._outcome.counts["replays"] += 1
            if replayed != coordinator.machine.state:
                self._ledger.blame(
                    f"{coordinator.name}: {coordinator.machine.state} is not what the topic says: {replayed}"
                )

    async def _let_groups_catch_up(self) -> None:
        """See that every group comes to have read everything, by the members that it has, or a new one."""
        if not self._has_groups:
            return
        if not self._durable:  # members do not commit again what the coordinator has forgotten
            for member in self._members.values():
                await member.leave()
            self._members.clear()
        for number in range(len(GROUPS)):
            if not any(member.group == group_of(number) for member in self._members.values()):
                self._join(number)
        partitions = [TopicPartition(topic.name, index) for topic in self._topics for index in range(topic.partitions)]
        loop = self._loop
        deadline = loop.time() + CATCH_UP_SECONDS_MAX
        await self._machine.serving()
        async with Admin(ADDRESS, ports=self._machine.ports) as admin:
            while True:
                behind = [
                    f"{group} at {committed} of {end} in {partition}"
                    for group in GROUPS
                    for partition, committed, end in await self._lag(admin, group, partitions)
                ]
                if not behind:
                    break
                if loop.time() > deadline:
                    self._ledger.blame(f"groups do not come to an end: {behind}")
                    break
                await asyncio.sleep(0.2)
        self._compare_with_replay()
        for member in self._members.values():
            await member.leave()

    async def _lag(
        self, admin: Admin, group: str, partitions: list[TopicPartition]
    ) -> list[tuple[TopicPartition, int, int]]:
        """Give the partitions in which there is something left to read, with what is committed and the end."""
        starts = await admin.list_offsets(dict.fromkeys(partitions, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"))
        committed = {each: at.offset for each, at in (await admin.group_offsets(group)).items()}
        return [
            (each, committed.get(each, 0), ends[each].offset)
            for each in partitions
            if max(committed.get(each, 0), starts[each].offset) < ends[each].offset
        ]

    # -- the end

    async def _settle(self) -> None:
        """Let all trouble end and everything under way come to its end; then lose power once more."""
        self._machine.heal()
        if self._machine.node is not None and self._machine.node.not_ready():
            self._machine.lose_power()  # a directory that is offline comes back with a restart
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        for topic in self._topics:
            await self._end_reader(topic)
        for producer in self._producers:
            try:
                await producer.close()
            except KafkaError:
                pass  # every delivery has told already
        await self._let_groups_catch_up()
        self._watch()
        self._machine.lose_power()
        await asyncio.sleep(0.001)
        await self._machine.serving()
        self._watch()

    async def _read_back(self) -> None:
        ports = self._machine.ports
        given: dict[str, Any] = {"ports": ports, "auto_offset_reset": "earliest"}  # retention goes on meanwhile
        async with Admin(ADDRESS, ports=ports) as admin, Consumer(ADDRESS, **given) as consumer:
            there = {topic.name: len(topic.partitions) for topic in await admin.list_topics()}
            expected = {topic.name: topic.partitions for topic in self._topics if topic.partitions}
            if there != expected:
                self._ledger.blame(f"the node has the topics {there}; {expected} were created")
            for topic in self._topics:
                if there.get(topic.name) == topic.partitions:
                    await self._read_topic(topic, admin, consumer)
        if self._has_groups:
            await self._audit()

    async def _read_topic(self, topic: _Topic, admin: Admin, consumer: Consumer) -> None:
        configs = await admin.describe_configs(topic=topic.name)
        for name, value in topic.configs.items():
            if configs[name].value != value:
                self._ledger.blame(f"{topic.name} has {name}={configs[name].value}; {value} was acknowledged")
        for index in range(topic.partitions):
            partition = TopicPartition(topic.name, index)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            (end,) = (await consumer.end_offsets([partition])).values()
            read: list[tuple[int, Label]] = []
            while await consumer.position(partition) < end:
                try:
                    records = await consumer.poll(timeout_ms=1_000)
                except CorruptRecords as error:
                    await consumer.seek(partition, self._lose(topic, index, error.offset))
                    continue
                for record in records:
                    label = self._show(topic, topic.incarnation, index, record.offset, record.key, record.value)
                    if label is not None:
                        read.append((record.offset, label))
            self._watch()
            self._ledger.judge(topic.name, topic.incarnation, index, read, EXACTLY_ONCE)
            await self._judge_groups(partition, admin, [offset for offset, _ in read])

    async def _judge_groups(self, partition: TopicPartition, admin: Admin, held: list[int]) -> None:
        ledger = self._ledger.partition(partition.topic, 1, partition.partition)
        if not self._has_groups or ledger.may_expire:
            return
        for group in GROUPS:
            committed = (await admin.group_offsets(group)).get(partition)
            if committed is not None:
                kept = [offset for offset in held if offset >= ledger.given_up]
                self._group_ledger.judge(group, partition, committed.offset, kept)

    def _lose(self, topic: _Topic, index: int, offset: int) -> int:
        """Note which offsets the node refuses because they are damaged; give the one behind them."""
        ledger = self._ledger.partition(topic.name, topic.incarnation, index)
        node = self._machine.node
        partition = node and node._replicas.get(topic.name, index)
        known = partition and partition.log.quarantine.at(Offset(offset))
        if not ledger.rotten or not known:
            self._ledger.blame(f"{topic.name}-{index}: offset {offset} is refused, but nothing is wrong with it")
            return offset + 1
        ledger.lost.update(range(known.flaw.first_offset, known.flaw.next_offset))
        self._say(f"{topic.name}-{index} refuses {offset}")
        self._outcome.counts["refused"] += 1
        return known.flaw.next_offset
