"""The door of the sink: what is refused before anything is connected."""

import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import StringType, StructType

from riverlog.spark.options import BadOption
from riverlog.spark.sink.columns import BadColumn
from riverlog.spark.sink.writers import StreamBatchSink, Unplanned, batch_writer, stream_writer

VALUES = StructType().add("value", StringType())


def test_both_kinds_of_writers_take_arrow() -> None:
    assert isinstance(batch_writer({"topic": "t"}, VALUES, overwrite=False), DataSourceArrowWriter)
    assert isinstance(stream_writer({"topic": "t"}, VALUES, overwrite=False), DataSourceStreamArrowWriter)


def test_a_batch_out_of_a_query_is_committed_with_it() -> None:
    given = {"topic": "t", "ofStream": "true", "checkpointLocation": "webhdfs://127.0.0.1:9870/pipelines/orders"}
    writer = batch_writer(given, VALUES, overwrite=False)
    assert isinstance(writer, StreamBatchSink)
    writer.commit([None])
    writer.abort([])
    assert not isinstance(batch_writer({"topic": "t", "ofStream": "false"}, VALUES, overwrite=False), StreamBatchSink)


def test_a_stream_of_complete_results_is_appended_as_by_sparks_own_sink() -> None:
    assert stream_writer({"topic": "t"}, VALUES, overwrite=True)


def test_records_cannot_be_overwritten() -> None:
    with pytest.raises(ValueError, match=r'mode\("append"\)'):
        batch_writer({"topic": "t"}, VALUES, overwrite=True)


@pytest.mark.parametrize("writer", [batch_writer, stream_writer])
def test_columns_and_options_are_looked_at_first(writer) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadColumn):
        writer({}, VALUES, overwrite=False)
    with pytest.raises(BadOption):
        writer({"topic": "t", "topik": "t"}, VALUES, overwrite=False)


def test_messages_of_tasks_that_failed_are_passed_over() -> None:
    stream_writer({"topic": "t"}, VALUES, overwrite=False).commit([], 0)
    stream_writer({"topic": "t"}, VALUES, overwrite=False).abort([None, None], 0)


@pytest.mark.parametrize("given", [{}, {"checkpointLocation": "webhdfs://127.0.0.1:1/pipelines/orders"}])
def test_what_stands_against_a_plan_reaches_the_user_in_its_own_words(given: dict[str, str]) -> None:
    writer = stream_writer({"topic": "t", "kafka.max.block.ms": "1", **given}, VALUES, overwrite=False)
    with pytest.raises(Unplanned) as refused:
        CloudPickleSerializer().dumps(writer)
    assert "serialize" not in str(refused.value)
