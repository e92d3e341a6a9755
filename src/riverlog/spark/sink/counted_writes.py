"""Several writes of one batch, in a query's foreachBatch, where the sink itself ends a transaction for each.

Writes of a batch come one behind the other, and each has its ordinal: the first, the second, and so on. A batch that is
run again makes the same writes in the same order, and one that is committed is not written again. The ordinal is kept
with the pipeline, as a batch that nobody writes in: Spark plans each write without saying which batch it is for.
"""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from riverlog.spark.limits import SINK_WRITES_PER_BATCH_MAX
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.options import SinkOptions
from riverlog.spark.worker.attempt import StreamAttempt

if TYPE_CHECKING:
    from riverlog.client.producer.shared_transactions import CommittedBatch


@dataclass(frozen=True, slots=True)
class Counted:
    """The last write that was counted, in the run of the query that made it."""

    number: int = -1
    """How many writes were counted before, of all batches and runs."""
    query: str = ""
    run: str = ""
    batch: int = -1
    writes: int = 0
    """The ordinal of this write in its batch, from 1 on."""

    def after(self, attempt: StreamAttempt) -> "Counted":
        """Count one more."""
        return Counted(self.number + 1, attempt.query, attempt.run, attempt.batch, self._ordinal(attempt))

    def incarnation(self, attempt: StreamAttempt) -> str:
        """Name the incarnation in which the write that follows is a batch; SinkRefused where there are too many."""
        ordinal = self._ordinal(attempt)
        if ordinal > SINK_WRITES_PER_BATCH_MAX:
            raise SinkRefused(
                f"batch {attempt.batch} is written more than {SINK_WRITES_PER_BATCH_MAX} times, and no more are kept "
                "apart: write several topics at once, with a column topic, or keep the checkpoint on the node"
            )
        return attempt.query if ordinal == 1 else f"{attempt.query}#{ordinal}"

    def marker(self) -> bytes:
        """Write it as what is left with a batch."""
        facts = asdict(self)
        del facts["number"]
        return json.dumps(facts).encode()

    def _ordinal(self, attempt: StreamAttempt) -> int:
        is_next = (self.query, self.run, self.batch) == (attempt.query, attempt.run, attempt.batch)
        return self.writes + 1 if is_next else 1


def counted_of(committed: "CommittedBatch | None") -> Counted:
    """Read what was counted last; nothing where nobody has."""
    return Counted() if committed is None else Counted(committed.number, **json.loads(committed.marker))


def what_is_written(options: SinkOptions) -> bytes:
    """Describe a write, so that another one in its place is noticed."""
    return f"topic {options.topic}".encode() if options.topic else b"topics that rows name"


def check_same(committed: "CommittedBatch | None", batch: int, written: bytes) -> None:
    """Refuse a write that is taken for another one, which was committed in its place when the batch was run before."""
    if committed is None or committed.number != batch or committed.marker in (b"", written):
        return
    raise SinkRefused(
        f"batch {batch} is run again, and writes {written.decode()} where it wrote {committed.marker.decode()} before: "
        "with this checkpoint the writes of a batch must come in the same order each time. Give each its own "
        "kafka.transactional.id, or keep the checkpoint on the node"
    )
