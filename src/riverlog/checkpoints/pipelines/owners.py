"""The pipelines' shared transactions, through the client: the store is the owner of each, in the current run's name."""

from typing import Final

from riverlog.checkpoints.pipelines.pipeline import Member, PipelineState, Prepared, name_of, transactional_id_of
from riverlog.checkpoints.pipelines.spark_logs import SourceOffset
from riverlog.client.errors import KafkaError
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.client.producer.shared_transactions import CommittedBatch, Membership, SharedBatch, SharedTransactions
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition

_BLOCK_MS_MAX: Final = 20_000
"""Less than an HTTP client waits."""


class Owners:
    """Takes over transactional ids, and ends batches."""

    def __init__(self, bootstrap: str, *, ports: Ports | None = None, security: Security | None = None) -> None:
        self._bootstrap = bootstrap
        self._ports = ports
        self._security = security
        self._shared: dict[str, SharedTransactions] = {}

    async def close(self) -> None:
        while self._shared:
            await self._shared.popitem()[1].close()

    async def take_over(self, path: str, query: str, *, timeout_ms: int) -> Member:
        """Fence the owner before, abort what it left open, and return the new one."""
        await self.forget(path)
        shared = self._make(path, query, timeout_ms=timeout_ms)
        await shared.start()
        self._shared[path] = shared
        batch = shared.batch(0)
        return batch.owner_id, batch.owner_epoch

    async def commit(
        self, path: str, pipeline: PipelineState, prepared: Prepared, offsets: tuple[SourceOffset, ...]
    ) -> None:
        """Commit a batch with the offsets of the pipeline's group; raises as `SharedTransactions.commit` does."""
        shared = await self._of(path, pipeline)
        await shared.commit(
            batch_of(path, pipeline, prepared.announced.batch),
            [Membership(member) for member in prepared.announced.members],
            group=name_of(path),
            offsets={TopicPartition(topic, index): offset for topic, index, offset in offsets},
            marker=prepared.marker,
        )

    async def abort(self, path: str, pipeline: PipelineState, batch: int) -> bool:
        """Abort a batch, and return whether it is aborted: a committed one is not."""
        shared = await self._of(path, pipeline)
        try:
            await shared.abort(batch_of(path, pipeline, batch))
        except KafkaError as problem:
            if problem.code is ErrorCode.INVALID_TXN_STATE:
                return False
            raise
        return True

    async def is_committed(self, path: str, pipeline: PipelineState, prepared: Prepared) -> bool:
        """Return whether exactly what was prepared is committed; who was replaced can still ask."""
        committed = await (await self._of(path, pipeline)).committed()
        return committed == CommittedBatch(prepared.announced.batch, prepared.marker)

    async def open_batch(self, path: str, pipeline: PipelineState) -> int | None:
        """Return the batch that members have joined and that is not ended, if there is one."""
        return await (await self._of(path, pipeline)).open_batch()

    async def _of(self, path: str, pipeline: PipelineState) -> SharedTransactions:
        if path not in self._shared:
            shared = self._make(path, pipeline.caller.query, owner=pipeline.owner)
            await shared.start()
            self._shared[path] = shared
        return self._shared[path]

    async def forget(self, path: str) -> None:
        """Release what is held for a pipeline."""
        if path in self._shared:
            await self._shared.pop(path).close()

    def _make(
        self, path: str, query: str, *, owner: Member | None = None, timeout_ms: int = 60_000
    ) -> SharedTransactions:
        return SharedTransactions(
            self._bootstrap,
            transactional_id_of(path),
            incarnation=query,
            owner=owner,
            transaction_timeout_ms=timeout_ms,
            block_ms_max=_BLOCK_MS_MAX,
            client_id="riverlog-checkpoints",
            security=self._security,
            ports=self._ports,
        )


def batch_of(path: str, pipeline: PipelineState, number: int) -> SharedBatch:
    """Name a batch for the tasks that are to write in it."""
    return SharedBatch(transactional_id_of(path), *pipeline.owner, pipeline.caller.query, number)
