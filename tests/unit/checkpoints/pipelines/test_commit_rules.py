"""Who may begin and commit batches, by the tree alone."""

import json
from contextlib import nullcontext

import pytest

from riverlog.checkpoints.files.refusals import DriverReplaced, RequestRefused
from riverlog.checkpoints.files.tree import Tree
from riverlog.checkpoints.pipelines import commit_rules
from riverlog.checkpoints.pipelines.pipeline import Announced, Begun, Caller, PipelineState, Prepared
from riverlog.checkpoints.records import FileFacts, FileKept

PATH = "/pipelines/orders"
OLD, NEW = Caller("q", "old"), Caller("q", "new")
FILE = FileFacts("id", 0, 0)


def tree_of(*names: str) -> Tree:
    """Return a tree with these files in the checkpoint, whose records have the offsets 0, 1, 2 …"""
    tree = Tree()
    for offset, name in enumerate(names):
        tree.apply(FileKept(f"{PATH}/{name}", FileFacts(str(offset), 0, 0), b""), offset)
    return tree


def pipeline(**facts: object) -> PipelineState:
    return PipelineState(NEW, (1, 0), **{"began_at": 0, "first_batch": 0, **facts})  # type: ignore[arg-type]


def commit(*names: str) -> bytes:
    return b"v2\n" + json.dumps({"stateUniqueIds": {"0": [list(names)]}}).encode()


def test_a_query_owns_the_checkpoint_that_names_it_and_has_its_plan() -> None:
    tree = tree_of("offsets/7")
    for metadata in (None, b"junk", b'{"id": "q"}'):
        commit_rules.check_own(tree, PATH, NEW, 7, metadata)
    with pytest.raises(RequestRefused, match="has planned no batch 8"):
        commit_rules.check_own(tree, PATH, NEW, 8, None)
    with pytest.raises(RequestRefused, match="not the checkpoint of query q"):
        commit_rules.check_own(tree, PATH, NEW, 7, b'{"id": "another"}')


def test_a_run_that_comes_late_is_refused_where_another_was_there() -> None:
    tree = tree_of("commits/7")
    commit_rules.check_not_behind(tree, PATH, None, OLD, 7)
    commit_rules.check_not_behind(tree, PATH, pipeline(), OLD, 8)
    with pytest.raises(DriverReplaced, match=r"another driver of this query \(run new\) went on"):
        commit_rules.check_not_behind(tree, PATH, pipeline(), OLD, 7)


def test_who_takes_over_remembers_the_runs_before_and_a_rival() -> None:
    tree = tree_of("commits/.7.a.tmp", "commits/.8.a.tmp")
    first = commit_rules.taken_over(tree, PATH, None, OLD, (5, 1), batch=7, started_at=0)
    assert first == PipelineState(OLD, (5, 1), 1, 7, started_at=0)
    announced = first.at(Announced(7, ()))
    second = commit_rules.taken_over(tree, PATH, announced, NEW, (5, 2), batch=8, started_at=1)
    assert (second.replaced, second.has_rival) == (("old",), False)


@pytest.mark.parametrize(
    ("known", "may"),
    [
        (pipeline(), False),
        (pipeline(step=Announced(6, ())), False),
        (pipeline(step=Announced(7, ()), noted_at=0), True),
        (pipeline(step=Announced(7, ())), False),  # its file was made, and is forgotten
        (pipeline(has_rival=True, first_batch=7), True),
        (pipeline(has_rival=True, first_batch=6), False),
    ],
)
def test_a_run_may_wake_up_that_has_announced_and_made_no_file(known: PipelineState, may: bool) -> None:
    assert commit_rules.may_wake_up(tree_of("commits/.7.a.tmp"), PATH, known, 7) is may


def test_a_pipeline_without_a_checkpoint_is_unplanned_unless_it_is_in_doubt() -> None:
    for step, planned in ((Begun(), True), (Prepared(Announced(0, ()), FILE), False)):
        tree = tree_of()
        assert not commit_rules.is_unplanned(tree, PATH)
        tree.pipelines[PATH] = pipeline(step=step)
        assert commit_rules.is_unplanned(tree, PATH) is planned
    tree = tree_of("offsets/0")
    tree.pipelines[PATH] = pipeline()
    assert not commit_rules.is_unplanned(tree, PATH)


def test_without_state_the_first_file_since_the_announcement_counts() -> None:
    tree = tree_of("commits/.7.before.tmp", "commits/.7.first.tmp", "commits/.7.second.tmp", "commits/.8.first.tmp")
    current = pipeline(has_rival=True, noted_at=0)

    def check(name: str, current: PipelineState = current) -> None:
        commit_rules.check_commit(tree, PATH, current, 7, f"{PATH}/commits/{name}", b"v1\n{}")

    check(".7.first.tmp")
    for name in (".7.before.tmp", ".7.second.tmp", ".8.first.tmp"):
        with pytest.raises(DriverReplaced, match="was announced by run new"):
            check(name)
    check(".7.second.tmp", pipeline(noted_at=0))


STATE = ("state/0/0/1_x1.changelog", "state/0/0/1_y2.changelog", "state/0/0/left/1_x1.zip", "state/0/0/SSTs/1_x1.sst")


@pytest.mark.parametrize(
    ("named", "facts", "counts"),
    [
        ("x1", {"began_at": -1}, True),
        ("x1", {"began_at": 0, "started_at": -1}, True),
        ("x1", {"began_at": 1}, False),
        ("x1", {"began_at": 1, "started_at": -1}, True),
        ("x1", {"began_at": 1, "started_at": 0}, False),
        ("x1", {"began_at": 1, "started_at": -1, "has_rival": True}, False),  # 1_y2 was kept since the start, too
        ("y2", {"began_at": 0}, True),
        ("nothing", {"began_at": 9}, True),
    ],
)
def test_state_of_a_run_that_was_replaced_does_not_count(named: str, facts: dict[str, int], counts: bool) -> None:
    with nullcontext() if counts else pytest.raises(DriverReplaced, match="before run new took over"):
        commit_rules.check_state(tree_of(*STATE), PATH, pipeline(**facts), commit(named))
