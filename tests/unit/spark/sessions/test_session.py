"""Which settings a session gets, without Spark; tests/spark has the sessions themselves."""

from pathlib import Path

import pytest

from riverlog.spark.sessions.session import _cores, _store_beside, settings


def test_settings_are_strings_by_sparks_names() -> None:
    chosen = settings()
    assert all(name.startswith("spark.") and isinstance(value, str) for name, value in chosen.items())
    assert chosen["spark.sql.streaming.stateStore.checkpointFormatVersion"] == "2"
    assert "spark.sql.streaming.checkpointLocation" not in chosen
    chosen.clear()
    assert settings()


@pytest.mark.parametrize(
    ("address", "location"),
    [
        ("127.0.0.1:9871", "webhdfs://127.0.0.1:9871/pipelines"),
        ("webhdfs://river:9870", "webhdfs://river:9870/pipelines"),
        ("swebhdfs://river:9871/", "swebhdfs://river:9871/pipelines"),
        ("river", "webhdfs://river:9870/pipelines"),
        ("[::1]:9870", "webhdfs://[::1]:9870/pipelines"),
    ],
)
def test_queries_keep_their_checkpoints_on_a_node_that_is_named(address: str, location: str) -> None:
    assert settings(address)["spark.sql.streaming.checkpointLocation"] == location


@pytest.mark.parametrize("address", ["", "http://river:9870", "webhdfs://", "webhdfs://river:9870/pipelines/orders"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is no address of a checkpoint store"):
        settings(address)


def test_the_store_of_a_broker_is_on_the_usual_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIVERLOG_CHECKPOINTS", raising=False)
    assert _store_beside(None) is None
    assert _store_beside("river-1:9092,river-2:9092") == "river-1:9870"
    assert _store_beside("[::1]:9092") == "[::1]:9870"
    with pytest.raises(ValueError, match="names no broker"):
        _store_beside(":9092")
    monkeypatch.setenv("RIVERLOG_CHECKPOINTS", "127.0.0.1:4711")
    assert _store_beside("river-1:9092") == "127.0.0.1:4711"


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("local-cluster[2,3,1024]", 6)]
)
def test_state_is_cut_into_as_many_parts_as_tasks_run_at_once(master: str, cores: int) -> None:
    assert _cores(master) == cores
    assert _cores("local[*]") >= 1


def test_every_setting_is_documented() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / "spark.md").read_text()
    assert [name for name, value in settings().items() if f"| `{name}` | `" not in text] == []
