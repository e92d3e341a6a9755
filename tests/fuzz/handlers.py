"""Boundary requests at whole nodes on virtual time: each is answered or its connection ends, and nothing else happens.

Wrong is: an exception that nobody expected, a node that ends, a log directory that goes offline, a connection whose
requests are never answered, a request that holds up the loop, and an honest client that loses a record. From time to
time the clock goes on by minutes, so that retention, compaction and scrubbing meet what was left; in the end the node
starts again from its disk.
"""

import asyncio
import reprlib
import time
from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass
from random import Random
from typing import Any, Final

from riverlog.model.errors import ErrorCode
from riverlog.node import Node
from riverlog.records.record import read_batches
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.headers import encode_request
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.fuzz.boundaries import TOPICS, BoundaryRequests
from tests.support.asking import Line, connected
from tests.support.batches import batch_of
from tests.support.virtual_time import VirtualTimeLoop
from tests.support.world import Universe

STRETCH_SECONDS_MAX: Final = 1.0
"""How much CPU one turn of the loop may use: others wait as long. Far more than any needs, for machines are slow."""
_WRONG_MAX: Final = 5
_REQUESTS_PER_NODE: Final = 400
_REQUESTS_PER_LINE: Final = 20
_MINUTES_EVERY: Final = 100
_ANSWER_SECONDS: Final = 120.0
_STEADY: Final = "steady"
_LONG_POLLS: Final = (ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
"""What may wait for as long as it was told."""
_SETTINGS: Final = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact", "segment.bytes": "2000", "min.cleanable.dirty.ratio": "0.01"},
    "checked": {"record.validation": "full"},
    "stamped": {"message.timestamp.type": "LogAppendTime", "retention.ms": "60000", "segment.bytes": "2000"},
    "many": {"flush.messages": "1"},
}


@dataclass
class HandlersReport:
    """What was asked and what came of it."""

    requests: int = 0
    answered: int = 0
    ended: int = 0
    nodes: int = 0
    seconds: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    by_api: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"handlers: {self.requests:,} boundary requests at {self.nodes} nodes, {self.seconds:.0f} s, "
            f"{len(self.wrong)} wrong; {self.answered:,} answered, {self.ended:,} connections ended; "
            f"the longest turn took {self.slowest[0] * 1000:.0f} ms of CPU ({self.slowest[1]})"
        )


def fuzz_handlers(seconds: float, seed: int, *, requests: int = 0) -> HandlersReport:
    """Send boundary requests for a time and until there were so many, to one node after the other."""
    report = HandlersReport()
    began = time.monotonic()
    while not report.wrong and (time.monotonic() - began < seconds or report.requests < requests):
        with asyncio.Runner(loop_factory=_MeteredLoop) as runner:
            runner.run(_Visit(seed + report.nodes, report).run())
        report.nodes += 1
    report.seconds = time.monotonic() - began
    return report


class _Short(reprlib.Repr):
    """Shows a message without its long texts and arrays."""

    def repr_instance(self, x: Any, level: int) -> str:
        if not is_dataclass(x) or isinstance(x, type):
            return super().repr_instance(x, level)
        parts = ", ".join(f"{each.name}={self.repr1(getattr(x, each.name), level - 1)}" for each in fields(x))
        return f"{type(x).__name__}({parts})"


_SHORT: Final = _Short()
_SHORT.maxlevel = 8
_SHORT.maxstring = _SHORT.maxother = 60


class _MeteredLoop(VirtualTimeLoop):
    """Remembers its longest turn, in seconds of CPU."""

    longest_seconds = 0.0

    def _run_once(self) -> None:
        began = time.process_time()
        super()._run_once()  # type: ignore[misc]
        self.longest_seconds = max(self.longest_seconds, time.process_time() - began)


class _Visit:
    """One node from its start to its second end."""

    def __init__(self, seed: int, report: HandlersReport) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._report = report
        self._universe = Universe(seed)
        self._node: Node
        self._kept = 0
        self._last = "nothing"

    async def run(self) -> None:
        """Send a node requests of every kind, and see that it serves as before, now and after a restart."""
        await self._start()
        made = BoundaryRequests(self._random, await self._create_topics())
        line = await connected(self._universe)
        for number in range(_REQUESTS_PER_NODE):
            if self._report.wrong:
                return
            if line.ended.is_set() or number % _REQUESTS_PER_LINE == 0:
                line.close()
                line = await connected(self._universe)
            api = self._random.choice(APIS)
            version = self._random.choice(list(api.versions))
            await self._send(line, api, version, made)
            if number % _MINUTES_EVERY == _MINUTES_EVERY - 1:
                await asyncio.sleep(600)
                await self._be_honest()
        line.close()
        await self._node.stop()
        await self._start()
        await asyncio.sleep(600)
        await self._be_honest()
        self._judge_node()
        await self._node.stop()

    async def _start(self) -> None:
        node = self._node = self._universe.node(log_cleaner_backoff_ms="1000", log_segment_delete_delay_ms="1000")
        contain = node._contain

        def heard(doing: str, error: BaseException) -> None:
            self._wrong(f"{doing}: {error!r}")
            contain(doing, error)

        node._contain = heard  # type: ignore[method-assign]
        await node.start()

    async def _create_topics(self) -> dict[str, Any]:
        """Create a topic of each kind, and one that no hostile request names."""
        line = await connected(self._universe)
        topics = [
            CreatableTopic(
                name, 100 if name == "many" else 2, 1, [], [CreatableTopicConfig(*each) for each in config.items()]
            )
            for name, config in _SETTINGS.items()
        ]
        created = await line.ask(
            ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[*topics, CreatableTopic(_STEADY, 1, 1)])
        )
        line.close()
        assert {topic.error_code for topic in created.topics} == {ErrorCode.NONE}
        return {topic.name: topic.topic_id for topic in created.topics if topic.name in TOPICS}

    async def _send(self, line: Line, api: Api, version: int, made: BoundaryRequests) -> None:
        """Send one request and wait for its answer, for the end of its connection, or for neither."""
        report = self._report
        request = made.request_of(api, version)
        self._last = f"{api.name} version {version}: {_SHORT.repr(request)}"
        try:
            encode_request(api, version, 0, "fuzz", request)
        except (MalformedMessage, ValueError, OverflowError):
            return  # no client could write this
        report.requests += 1
        report.by_api[api.name] += 1
        expects = not (api.key is ApiKey.PRODUCE and request.acks == 0)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _MeteredLoop)
        loop.longest_seconds = 0.0
        answered = line.send(api.key, version, request)
        if not expects:
            line.forget(answered)
        ended = asyncio.ensure_future(line.ended.wait())
        await asyncio.wait(
            [answered, ended] if expects else [ended],
            timeout=_ANSWER_SECONDS if expects else 0.1,
            return_when=asyncio.FIRST_COMPLETED,
        )
        ended.cancel()
        report.slowest = max(report.slowest, (loop.longest_seconds, f"{api.name} version {version}"))
        if loop.longest_seconds > STRETCH_SECONDS_MAX:
            self._wrong(f"the loop stood still for {loop.longest_seconds:.1f} s of CPU")
        if answered.done():
            report.answered += 1
        elif line.ended.is_set():
            report.ended += 1
        elif expects and api.key not in _LONG_POLLS:
            self._wrong("neither answered nor refused")
        else:
            line.close()
            line.ended.set()
        self._judge_node()

    def _judge_node(self) -> None:
        if self._node.failure is not None:
            self._wrong(f"the node ended: {self._node.failure!r}")
        for directory in self._node.parts.registry.directories:
            if directory.health.offline:
                self._wrong(f"{directory.health.trouble}")

    async def _be_honest(self) -> None:
        """Write one record to the steady topic, and read all that were ever written there."""
        line = await connected(self._universe)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                part = PartitionProduceData(index=0, records=memoryview(self._batch()))
                written = await line.ask(
                    ApiKey.PRODUCE,
                    9,
                    ProduceRequest(
                        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(_STEADY, partition_data=[part])]
                    ),
                )
                code = written.responses[0].partition_responses[0].error_code
                if code != ErrorCode.NONE:
                    self._wrong(f"an honest record was refused: {ErrorCode(code).name}")
                    return
                self._kept += 1
                wanted = FetchRequest(
                    max_wait_ms=0,
                    min_bytes=1,
                    max_bytes=1 << 24,
                    topics=[
                        FetchTopic(topic=_STEADY, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 24)])
                    ],
                )
                answer = (await line.ask(ApiKey.FETCH, 12, wanted)).responses[0].partitions[0]
            values = [record.value for _, records in read_batches(answer.records) for record in records]
            if values != [b"%d" % number for number in range(self._kept)]:
                self._wrong(f"of {self._kept} honest records {len(values)} are read")
        except TimeoutError:
            self._wrong("an honest client is not answered")
        finally:
            line.close()

    def _batch(self) -> bytes:
        return bytes(batch_of([b"%d" % self._kept], timestamp_ms=self._universe.clock.wall_ms()))

    def _wrong(self, what: str) -> None:
        if len(self._report.wrong) < _WRONG_MAX:
            self._report.wrong.append(f"seed {self._seed}, after {self._last}: {what}")
