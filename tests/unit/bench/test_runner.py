"""Brokers take turns, and one that cannot do a line does not stop the others."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.runner import Plan, prepare, run
from bench.trial import Better, Failed, Line, NotRun, Row, Trial, Values
from bench.workshop import Workshop


@dataclass(slots=True)
class FakeNode:
    """A node that does nothing and remembers being stopped."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 0
    pid: int = 0
    stopped: bool = False

    def stop(self) -> None:
        self.stopped = True

    def kill(self) -> None:
        self.stopped = True


@dataclass(slots=True)
class FakeBroker:
    """A contender whose nodes are no processes."""

    name: str
    command: str = "run it"
    missing: str | None = None
    broken: str | None = None
    warm_seconds: float = 0.0
    durable_topic: Mapping[str, str] = field(default_factory=dict)
    nodes: list[FakeNode] = field(default_factory=list)

    def prepare(self) -> str:
        if self.missing:
            raise NotRun(self.missing)
        return "1.0"

    def format(self, folder: Path) -> None:
        pass

    def start(self, folder: Path) -> FakeNode:
        if self.broken:
            raise Failed(self.broken)
        self.nodes.append(FakeNode(folder))
        return self.nodes[-1]


def line(name: str, probe: "Recorder", *, on_shared_node: bool = False, ours_only: bool = False) -> Line:
    return Line(name, "about", probe, (Row("rate", "/s", Better.HIGHER),), on_shared_node, ours_only)


@dataclass(slots=True)
class Recorder:
    """A probe that remembers its trials and may fail for one contender."""

    trials: list[Trial] = field(default_factory=list)
    fails_for: str | None = None
    failure: Exception = field(default_factory=lambda: Failed("it broke"))

    def __call__(self, trial: Trial) -> Values:
        self.trials.append(trial)
        assert trial.folder.is_dir()
        if trial.contender.name == self.fails_for:
            raise self.failure
        return {"rate": float(len(self.trials))}


def plan(folder: Path, *lines: Line, warm_up: Recorder | None = None) -> Plan:
    warm_up_line = line("warm-up", warm_up or Recorder())
    return Plan(
        lines,
        2,
        1.0,
        folder,
        cold_line=warm_up_line,
        warm_up_lines=[warm_up_line],
        warm_seconds_max=1e-9,
        workshop=Workshop(folder),
    )


def quiet(_: str) -> None:
    pass


def test_contenders_alternate_within_a_line(tmp_path: Path) -> None:
    probe = Recorder()
    entrants = prepare([FakeBroker("riverlog"), FakeBroker("Kafka")], quiet)
    columns = run(plan(tmp_path, line("one", probe)), entrants, quiet)
    assert [trial.contender.name for trial in probe.trials] == ["riverlog", "Kafka", "riverlog", "Kafka"]
    assert [sample.values["rate"] for sample in columns["one"]["Kafka"].samples] == [2.0, 4.0]
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_fails_once_is_not_tried_again_and_the_rest_goes_on(tmp_path: Path) -> None:
    broken, sound = Recorder(fails_for="Kafka"), Recorder()
    entrants = prepare([FakeBroker("riverlog"), FakeBroker("Kafka")], quiet)
    columns = run(plan(tmp_path, line("one", broken), line("two", sound)), entrants, quiet)
    assert columns["one"]["Kafka"].absence == "FAILED: it broke"
    assert len(columns["one"]["riverlog"].samples) == 2
    assert [trial.contender.name for trial in broken.trials] == ["riverlog", "Kafka", "riverlog"]
    assert len(sound.trials) == 4


def test_a_contender_that_is_missing_keeps_its_column_and_says_why(tmp_path: Path) -> None:
    said: list[str] = []
    entrants = prepare([FakeBroker("riverlog"), FakeBroker("Kafka", missing="no Java is installed")], said.append)
    columns = run(plan(tmp_path, line("one", Recorder())), entrants, quiet)
    assert said == ["riverlog 1.0", "Kafka NOT RUN: no Java is installed"]
    assert columns["one"]["Kafka"].absence == "NOT RUN: no Java is installed"
    assert columns["one"]["Kafka"].samples == []


def test_a_shared_node_is_warmed_serves_every_line_and_is_stopped_in_the_end(tmp_path: Path) -> None:
    probe, warm_up = Recorder(), Recorder()
    ours, theirs = FakeBroker("riverlog", warm_seconds=5.0), FakeBroker("Kafka", broken="no memory")
    lines = [line("one", probe, on_shared_node=True), line("two", probe, on_shared_node=True)]
    entrants = prepare([ours, theirs], quiet)
    columns = run(plan(tmp_path, *lines, warm_up=warm_up), entrants, quiet)
    (node,) = ours.nodes
    assert [trial.node for trial in warm_up.trials] == [node] * 2
    assert entrants[0].cold == {"rate": 1.0}
    assert [trial.node for trial in probe.trials] == [node] * 4
    assert node.stopped
    assert columns["two"]["Kafka"].absence == "FAILED: no memory"


def test_an_error_nobody_foresaw_is_the_line_s_failure_and_not_the_run_s(tmp_path: Path) -> None:
    broken, sound = Recorder(fails_for="riverlog", failure=OSError(5, "it\nbroke")), Recorder()
    entrants = prepare([FakeBroker("riverlog")], quiet)
    columns = run(plan(tmp_path, line("one", broken), line("two", sound)), entrants, quiet)
    assert columns["one"]["riverlog"].absence == "FAILED: OSError: [Errno 5] it broke"
    assert len(columns["two"]["riverlog"].samples) == 2


def test_what_a_probe_that_failed_has_started_is_ended(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def probe(_: Trial) -> Values:
        started.append(subprocess.Popen(["sleep", "60"]))
        raise Failed("it broke")

    failing = Line("one", "about", probe, (Row("rate", "/s", Better.HIGHER),), on_shared_node=False)
    run(plan(tmp_path, failing), prepare([FakeBroker("riverlog")], quiet), quiet)
    assert [process.wait(10) for process in started] == [-signal.SIGKILL]


def test_what_lines_share_outlives_the_one_that_asked_first(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def probe(trial: Trial) -> Values:
        if not started:
            started.append(subprocess.Popen(["sleep", "60"]))
            trial.workshop.pids.add(started[0].pid)
        return {"rate": 1.0}

    shared = Line("one", "about", probe, (Row("rate", "/s", Better.HIGHER),), on_shared_node=False)
    run(plan(tmp_path, shared), prepare([FakeBroker("riverlog")], quiet), quiet)
    (process,) = started
    try:
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_line_of_our_own_leaves_the_others_out(tmp_path: Path) -> None:
    probe = Recorder()
    entrants = prepare([FakeBroker("riverlog"), FakeBroker("Kafka")], quiet)
    columns = run(plan(tmp_path, line("one", probe, ours_only=True)), entrants, quiet)
    assert [trial.contender.name for trial in probe.trials] == ["riverlog"] * 2
    assert list(columns["one"]) == ["riverlog"]


def test_a_line_that_takes_minutes_is_measured_less_often(tmp_path: Path) -> None:
    probe = Recorder()
    once = Line("one", "about", probe, (Row("rate", "/s", Better.HIGHER),), on_shared_node=False, runs_max=1)
    run(plan(tmp_path, once), prepare([FakeBroker("riverlog"), FakeBroker("Kafka")], quiet), quiet)
    assert [trial.contender.name for trial in probe.trials] == ["riverlog", "Kafka"]


def test_a_shared_node_that_died_with_a_line_is_replaced_for_the_next(tmp_path: Path) -> None:
    ours = FakeBroker("riverlog", warm_seconds=1.0)
    broken, sound = Recorder(fails_for="riverlog"), Recorder()
    lines = [line("one", broken, on_shared_node=True), line("two", sound, on_shared_node=True)]
    run(plan(tmp_path, *lines), prepare([ours], quiet), quiet)
    dead, alive = ours.nodes  # nothing listens on a fake node's port, so each counts as dead once a line has failed
    assert [trial.node for trial in sound.trials] == [alive] * 2
    assert dead.stopped
    assert alive.stopped
