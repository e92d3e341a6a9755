"""The choice of a commit strategy: by what the user wants, where the checkpoint lies, and what the cluster offers.

The choice is made in the driver once per job, and with it the transactional id is taken over where the sink owns it:
whoever wrote under it before can write nothing any more.
"""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from riverlog.checkpoints.files.paths import parse_location
from riverlog.checkpoints.sink import SinkCalls
from riverlog.client.admin.admin import Admin
from riverlog.client.errors import KafkaError
from riverlog.client.producer.shared_transactions import SharedTransactions
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.commit_strategies import (
    AtLeastOnce,
    CheckpointTransaction,
    CommitStrategy,
    SinkTransaction,
    shared_arguments,
)
from riverlog.spark.sink.counted_writes import counted_of
from riverlog.spark.sink.options import AT_LEAST_ONCE, CLIENT, SinkOptions
from riverlog.spark.sink.retries import started
from riverlog.spark.sink.session_checkpoint import SessionCheckpoint

_PREFIX: Final = "spark:"
_STORE: Final = "webhdfs://"


def choose_strategy(options: SinkOptions, *, is_stream: bool, is_one_of_several: bool = False) -> CommitStrategy:
    """Choose, in the driver; SinkRefused where no strategy is possible.

    A batch of a stream may be written by one of several writes, in the query's foreachBatch.
    """
    if not options.is_exactly_once:
        return AtLeastOnce()
    location = options.checkpoint or ""
    if is_stream and location.startswith(_STORE) and decides(location, options):
        return CheckpointTransaction(location)
    if is_stream and not location and not options.transactional_id and options.query_name:
        return SessionCheckpoint(options.query_name)
    name = name_of(options) if is_stream else f"{_PREFIX}{uuid4()}"
    try:
        return asyncio.run(_take_over(name, options, is_stream=is_stream, is_one_of_several=is_one_of_several))
    except KafkaError as problem:
        raise SinkRefused(f"the transaction cannot be begun: {problem}") from None


def decides(location: str, options: SinkOptions) -> bool:
    """Return whether the store of a checkpoint can end transactions of the cluster that is written to.

    Planning goes on in one process from batch to batch, so a yes is remembered there.
    """
    asked = (location, options.cluster.bootstrap)
    if asked not in _DECIDED_BY:
        try:
            with closing(SinkCalls(location, seconds_max=options.patience_seconds)) as calls:
                store = calls.cluster_id()
            written_to = asyncio.run(_cluster_id(options))
        except OSError as problem:
            raise SinkRefused(f"the store of the checkpoint {location} cannot be reached: {problem}") from None
        except KafkaError as problem:
            raise SinkRefused(f"the cluster to write to does not answer: {problem}") from None
        if store is None or store != written_to:
            return False
        _DECIDED_BY.add(asked)
    return True


_DECIDED_BY: Final[set[tuple[str, str]]] = set()
"""Checkpoints, and the clusters for which their stores decide."""


async def _cluster_id(options: SinkOptions) -> str:
    asking = Admin(options.cluster.bootstrap, client_id=CLIENT["client_id"])
    async with started(asking, seconds_max=options.patience_seconds) as admin:
        return (await admin.describe_cluster()).cluster_id


async def _take_over(name: str, options: SinkOptions, *, is_stream: bool, is_one_of_several: bool) -> CommitStrategy:
    # No member is known under this incarnation: the batches that tasks join have that of their query. It counts writes.
    owning = SharedTransactions(options.cluster.bootstrap, name, incarnation=name, **shared_arguments(options))
    async with started(owning, seconds_max=options.patience_seconds) as owner:
        taken = owner.batch(0)
        if await owner.is_offered():
            counted = counted_of(await owner.committed()) if is_one_of_several else None
            return SinkTransaction(name, taken.owner_id, taken.owner_epoch, counted)
    from riverlog.spark.sink import listed_transactions

    if not is_stream:
        return listed_transactions.ListedTransactions(name)
    owner_before = taken.owner_id, taken.owner_epoch
    return await listed_transactions.take_over(name, owner_before, options, is_one_of_several=is_one_of_several)


def name_of(options: SinkOptions) -> str:
    """Name the pipeline: whoever has the same name takes over from whoever had it before."""
    if options.transactional_id:
        return options.transactional_id
    if options.checkpoint:
        return _PREFIX + (_query_in(options.checkpoint) or options.checkpoint)
    raise SinkRefused(
        "this query has no name of its own, so a second start could not take over from the first: set "
        f'.option("checkpointLocation", ...), or the option delivery={AT_LEAST_ONCE}'
    )


def _query_in(location: str) -> str | None:
    """Read the query's id from a checkpoint in a local folder, whose path alone is the same on many machines."""
    parsed = parse_location(location)
    if parsed.scheme not in ("", "file"):
        return None
    path = Path(parsed.path)
    try:
        return str(UUID(str(json.loads((path / "metadata").read_text())["id"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
