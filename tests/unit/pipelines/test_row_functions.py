from typing import Any

import pyarrow as pa
import pytest

from riverlog.pipelines.row_functions import EachBatch, EachRow, one

SCHEMA = pa.schema([("word", pa.string()), ("length", pa.int64())])
GIVEN = pa.RecordBatch.from_pylist([{"text": "to be"}, {"text": ""}, {"text": "or"}])


def rows(step: EachRow) -> list[dict[str, Any]]:
    return [row for batch in step(iter([GIVEN])) for row in batch.to_pylist()]


def test_a_row_becomes_none_or_several() -> None:
    words = EachRow(lambda row: ({"word": word, "length": len(word)} for word in row["text"].split()), SCHEMA)
    assert [row["word"] for row in rows(words)] == ["to", "be", "or"]


def test_a_row_becomes_one_and_missing_columns_are_null() -> None:
    assert rows(EachRow(one(lambda row: {"word": row["text"]}), SCHEMA))[2] == {"word": "or", "length": None}


def test_what_is_no_row_of_the_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="the schema has no column size; name it there"):
        rows(EachRow(one(lambda _row: {"size": 1}), SCHEMA))
    with pytest.raises(TypeError, match="a mapped row is a dict of columns, not NoneType"):
        rows(EachRow(one(lambda _row: None), SCHEMA))  # type: ignore[arg-type,return-value]  # that is the mistake


def test_a_batch_becomes_another() -> None:
    assert list(EachBatch(lambda batch: batch.num_rows)(iter([GIVEN, GIVEN]))) == [3, 3]
