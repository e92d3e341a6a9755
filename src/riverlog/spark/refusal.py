"""Why a sink does not write, in one sentence that a user of Spark can act on."""

from typing import Final

from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode


class SinkRefused(RuntimeError):
    """The sink cannot write, or not commit; the message says why and what to do."""


class TakenOver(SinkRefused):
    """Another driver has taken the query over, as the store of its checkpoint says. It is known by this class."""


class Fenced(SinkRefused):
    """Nothing that this attempt writes is kept any more: somebody has taken over, or its time is up."""


def refusal(problem: KafkaError) -> SinkRefused:
    """Return why rows are not written: what broke the transaction, rather than that it is broken."""
    cause = problem
    while cause.code is ErrorCode.TRANSACTION_ABORTABLE and isinstance(cause.__cause__, KafkaError):
        cause = cause.__cause__
    advice = _ADVICE.get(cause.code)
    return SinkRefused(f"rows are not written: {cause.message}" + ("" if advice is None else f"; {advice}"))


_ADVICE: Final = {
    ErrorCode.MESSAGE_TOO_LARGE: "here a batch has as many bytes as the option kafka.batch.size says",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "with riverlog's command: riverlog topics create --name ... --partitions ...",
    ErrorCode.POLICY_VIOLATION: "write from fewer tasks, with .coalesce(...), or set delivery=at-least-once",
}
