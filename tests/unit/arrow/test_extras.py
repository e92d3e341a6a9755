"""What is missing is told with the command to get it."""

import sys

import pytest

from riverlog.arrow.extras import MissingExtra, has, need


def test_a_library_that_is_there_is_imported() -> None:
    assert need("pyarrow").__name__ == "pyarrow"
    assert has("pyarrow")
    assert not has("no_such_library")


@pytest.mark.parametrize(("module", "command"), [("pyarrow", r"riverlog\[scan\]"), ("polars", "pip install polars")])
def test_a_missing_library_is_named(module: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=f"{module} is not installed; run: .*{command}"):
        need(module)
