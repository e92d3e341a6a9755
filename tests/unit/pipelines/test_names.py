"""Names in any case."""

import pytest

from riverlog.pipelines.names import found


@pytest.mark.parametrize(
    ("name", "columns", "tells_cases_apart", "expected"),
    [
        ("at", ["key", "at"], False, "at"),
        ("AT", ["key", "at"], False, "at"),
        ("AT", ["key", "at"], True, None),
        ("at", ["At", "at"], False, "at"),
        ("AT", ["At", "at"], False, None),
        ("at", ["key"], False, None),
    ],
)
def test_a_name_is_found_as_spark_finds_it(
    name: str, columns: list[str], tells_cases_apart: bool, expected: str | None
) -> None:
    assert found(name, columns, tells_cases_apart=tells_cases_apart) == expected
