"""Shared transactions over a raw line: what owners and members say to the coordinator."""

from typing import Any

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_batches import DescribeBatchesRequest
from riverlog.wire.messages.end_transaction import (
    EndTransactionMember,
    EndTransactionPartition,
    EndTransactionRequest,
    EndTransactionTopic,
)
from riverlog.wire.messages.join_transaction import JoinTransactionRequest
from tests.support.asking import Line
from tests.support.coordinator_lines import ID
from tests.support.group_lines import GROUP


async def join(line: Line, owner: Any, batch: int = 0, *, task: int = 0, attempt: int = 0, **more: Any) -> Any:
    """Join a batch as an attempt of a task."""
    named = {"transactional_id": ID, "incarnation": "a"} | more
    request = JoinTransactionRequest(
        owner_id=owner.producer_id,
        owner_epoch=owner.producer_epoch,
        batch=batch,
        task=task,
        attempt=attempt,
        **named,
    )
    return await line.ask(ApiKey.JOIN_TRANSACTION, 0, request)


async def end_batch(
    line: Line,
    owner: Any,
    batch: int = 0,
    *members: Any,
    committed: bool = True,
    offsets: dict[str, int] | None = None,
    **more: Any,
) -> Any:
    """Decide a batch; offsets are those of the first partition of each topic."""
    named = {"transactional_id": ID, "incarnation": "a"} | more
    request = EndTransactionRequest(
        owner_id=owner.producer_id,
        owner_epoch=owner.producer_epoch,
        batch=batch,
        committed=committed,
        members=[EndTransactionMember(each.producer_id, each.producer_epoch) for each in members],
        group_id=GROUP if offsets is not None else None,
        topics=[
            EndTransactionTopic(topic, [EndTransactionPartition(0, offset)])
            for topic, offset in (offsets or {}).items()
        ],
        **named,
    )
    return await line.ask(ApiKey.END_TRANSACTION, 0, request)


async def batches(line: Line, incarnation: str = "a", transactional_id: str = ID) -> Any:
    """Ask how far an incarnation has come."""
    return await line.ask(ApiKey.DESCRIBE_BATCHES, 0, DescribeBatchesRequest(transactional_id, incarnation))
