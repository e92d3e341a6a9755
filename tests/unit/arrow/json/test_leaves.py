"""Types that the parser does not read as Spark does, on their own and inside of others."""

from datetime import UTC, date
from decimal import Decimal

import pyarrow as pa
import pytest

from riverlog.arrow.json.leaves import NOT_BASE64, converted, is_known, needs_zone, parsed_field, parsed_type

INNER = pa.struct([("day", pa.date32()), ("bytes", pa.binary()), ("more", pa.list_(pa.decimal128(5, 2)))])
KIND = pa.list_(INNER)


def test_the_parser_is_told_what_it_reads_well() -> None:
    told = parsed_type(KIND)
    assert told == pa.list_(
        pa.struct([("day", pa.string()), ("bytes", pa.string()), ("more", pa.list_(pa.decimal256(76, 2)))])
    )
    assert parsed_field(pa.field("at", pa.timestamp("us", "UTC"), nullable=False)) == pa.field("at", pa.string(), False)
    assert parsed_type(pa.int64()) == pa.int64()


def test_times_with_a_zone_are_found_inside_of_others() -> None:
    assert needs_zone(pa.list_(pa.struct([("at", pa.timestamp("us", "UTC"))])))
    assert not needs_zone(pa.timestamp("us"))
    assert not needs_zone(KIND)


def test_what_was_parsed_becomes_what_it_should_be() -> None:
    cells = [[{"day": "2024-01-31", "bytes": "YWI=", "more": [Decimal("1.50"), None]}, None], None, []]
    found = converted(pa.array(cells, parsed_type(KIND)), KIND, UTC)
    assert found.type == KIND
    assert found.to_pylist() == [
        [{"day": date(2024, 1, 31), "bytes": b"ab", "more": [Decimal("1.50"), None]}, None],
        None,
        [],
    ]
    found.validate(full=True)


def test_what_does_not_fit_is_invalid() -> None:
    with pytest.raises(pa.ArrowInvalid, match=NOT_BASE64):
        converted(pa.array(["YWI"]), pa.binary(), UTC)
    with pytest.raises(pa.ArrowInvalid, match="does not fit in precision"):
        converted(pa.array([Decimal(10**30)], pa.decimal256(76, 10)), pa.decimal128(38, 10), UTC)


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.duration("us"), pa.map_(pa.string(), pa.int64())])
def test_other_types_are_not_known(kind: pa.DataType) -> None:
    assert is_known(KIND)
    assert not is_known(kind)
    assert not is_known(pa.list_(pa.struct([("x", kind)])))
