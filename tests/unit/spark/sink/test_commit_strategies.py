"""What a task says that may write nothing any more."""

from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.sink import SinkCalls
from riverlog.client.producer.shared_transactions import SharedBatch
from riverlog.spark.refusal import Fenced, TakenOver
from riverlog.spark.sink import commit_strategies
from riverlog.spark.sink.commit_strategies import CheckpointTransaction
from riverlog.spark.sink.options import read_options
from riverlog.spark.worker.attempt import StreamAttempt

BATCH = SharedBatch("pipeline:orders", 4_000, 1, "q", 7)
ATTEMPT = StreamAttempt(partition=0, number=0, retry=0, query="q", run="old", batch=7)


@pytest.mark.parametrize(
    ("then", "expected", "words"),
    [
        (
            RequestRefused.replaced("run old of this query was replaced by run new"),
            TakenOver,
            "was replaced by run new",
        ),
        (BATCH, Fenced, "longer than kafka.transaction.timeout.ms"),
    ],
)
def test_who_is_fenced_asks_the_store_why(
    monkeypatch: pytest.MonkeyPatch, then: RequestRefused | SharedBatch, expected: type[Exception], words: str
) -> None:
    answers: list[RequestRefused | SharedBatch] = [BATCH, then]

    def begin(*_: object, **__: object) -> SharedBatch:
        answer = answers.pop(0)
        if isinstance(answer, RequestRefused):
            raise answer
        return answer

    def write(*_: Any) -> None:
        raise Fenced(f"batch 7 is not written: {commit_strategies.REPLACED}")

    monkeypatch.setattr(SinkCalls, "begin", begin)
    monkeypatch.setattr(commit_strategies, "write_as_member", write)
    strategy = CheckpointTransaction("webhdfs://127.0.0.1:1/pipelines/orders")
    with pytest.raises(expected, match=f"batch 7 is not written: .*{words}") as refused:
        strategy.write(iter([]), read_options({"topic": "t"}, is_stream=True), ATTEMPT)
    assert type(refused.value) is expected
    assert answers == []
