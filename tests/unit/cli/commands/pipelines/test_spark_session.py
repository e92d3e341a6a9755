"""What commands say that need Spark, where it cannot be had."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from riverlog.cli.commands.pipelines import spark_session
from riverlog.cli.terminal.exits import CommandError, ExitCode
from tests.support.waiting import until


def test_a_missing_pyspark_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with (
        pytest.raises(CommandError, match=r"pip install 'riverlog\[spark\]'"),
        spark_session.session("x", master=None, conf=()),
    ):
        pass


@pytest.mark.parametrize(
    "master", ["sprk://host:7077", "spark://host", "local[x]", "local[", "localhost:7077", "spark://host:7077,other"]
)
def test_a_master_that_spark_does_not_know_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(CommandError, match="is no master of Spark") as raised:
        spark_session.check_master(master)
    assert raised.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[*,4]", "local-cluster[2,1,512]", "yarn"])
def test_masters_of_spark_are_taken(master: str) -> None:
    spark_session.check_master(master)


def test_one_master_of_several_has_to_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        spark_session.check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(
        CommandError, match=r"no master of Spark answers at 127\.0\.0\.1:1: Connection refused"
    ) as raised:
        spark_session.check_master("spark://127.0.0.1:1", seconds_max=0)
    assert raised.value.exit_code is ExitCode.UNREACHABLE


def test_a_master_that_starts_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as starting:
        starting.bind(("127.0.0.1", 0))
        port = starting.getsockname()[1]
        waiting = threading.Thread(target=spark_session.check_master, args=(f"spark://127.0.0.1:{port}",))
        waiting.start()
        until(lambda: "yet: waiting for 60 s" in capsys.readouterr().err, lambda: "nobody waits")
        starting.listen()
        waiting.join(30)
        assert not waiting.is_alive()


@pytest.mark.parametrize("conf", ["memory", "a=1"])
def test_settings_are_pairs(conf: str) -> None:
    with pytest.raises(CommandError) as raised, spark_session.session("x", master=None, conf=(conf, "a=2")):
        pass
    assert raised.value.exit_code is ExitCode.USAGE


def test_a_store_that_is_no_address_is_refused() -> None:
    with (
        pytest.raises(CommandError, match="ready line") as raised,
        spark_session.session("x", master=None, conf=(), store="http://x"),
    ):
        pass
    assert raised.value.exit_code is ExitCode.USAGE


def test_the_cluster_is_known_to_all_for_as_long_as_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIVERLOG_BOOTSTRAP_SERVERS", raising=False)
    with spark_session.bootstrap_for_all("one:9092"):
        assert os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] == "one:9092"
        with spark_session.bootstrap_for_all("two:9092"):
            assert os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] == "two:9092"
        assert os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] == "one:9092"
    assert "RIVERLOG_BOOTSTRAP_SERVERS" not in os.environ


def test_a_file_without_pipelines_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "nothing_here.py"
    file.write_text("x = 1")
    with pytest.raises(CommandError, match="defines no pipeline"):
        spark_session.loaded(file)
    with pytest.raises(CommandError, match="there is no file"):
        spark_session.check_file(tmp_path / "missing.py")
