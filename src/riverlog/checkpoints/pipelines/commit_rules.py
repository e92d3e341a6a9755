"""The rules by which a run may begin or commit a batch while others of the same query were replaced, or wake up. Pure.

A rule reads the tree and refuses, or answers. docs/adr/0010-one-decision-per-batch.md has the reasons.
"""

from collections.abc import Iterator

from riverlog.checkpoints.files.paths import is_temporary
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory, StoredFile, Tree, is_checkpoint
from riverlog.checkpoints.pipelines.pipeline import Announced, Caller, Member, PipelineState, Prepared
from riverlog.checkpoints.pipelines.spark_logs import StateName, query_of, state_names


def check_own(tree: Tree, path: str, caller: Caller, batch: int, metadata: bytes | None) -> None:
    """Refuse a query that keeps its checkpoint elsewhere: no RENAME here would ever commit what it writes."""
    query = None if metadata is None else query_of(metadata)
    if tree.file(f"{path}/offsets/{batch}") is None or query not in (None, caller.query):
        raise RequestRefused.failed(
            f"{path} is not the checkpoint of query {caller.query}, which has planned no batch {batch} there; "
            "where foreachBatch writes, the checkpointLocation is that of the query"
        )


def check_not_behind(tree: Tree, path: str, known: PipelineState | None, caller: Caller, batch: int) -> None:
    """Refuse a run whose first batch is done: if it fenced the one that did it, both would stop."""
    if known is not None and tree.file(f"{path}/commits/{batch}") is not None:
        raise RequestRefused.replaced(
            f"batch {batch} is committed: another driver of this query (run {known.caller.run}) went on while "
            f"this one (run {caller.run}) was starting; stop that one before you start another"
        )


def taken_over(
    tree: Tree, path: str, known: PipelineState | None, caller: Caller, owner: Member, *, batch: int, started_at: int
) -> PipelineState:
    """Return the pipeline with a new run, which begins with this batch."""
    return PipelineState(
        caller,
        owner,
        tree.last_offset,
        batch,
        () if known is None else known.runs_replaced(),
        started_at=started_at,
        has_rival=known is not None and may_wake_up(tree, path, known, batch),
    )


def may_wake_up(tree: Tree, path: str, known: PipelineState, batch: int) -> bool:
    """Return whether a run that is replaced, or one before it, may still commit the batch: it has announced it.

    If it has made the file, that is forgotten now, and it does not make another.
    """
    if known.has_rival and known.first_batch == batch:
        return True
    step = known.step
    return isinstance(step, Announced) and step.batch == batch and not made_since(tree, path, known, batch)


def is_unplanned(tree: Tree, path: str) -> bool:
    """Return whether a pipeline has no checkpoint and no batch in doubt: who called in its name planned nothing."""
    pipeline = tree.pipelines.get(path)
    is_decided = pipeline is not None and not isinstance(pipeline.step, Prepared)
    return is_decided and not is_checkpoint(tree.find(path))


def check_commit(tree: Tree, path: str, pipeline: PipelineState, batch: int, source: str, commit: bytes) -> None:
    """Refuse a `commits/N` of an announced batch that is of a run that was replaced."""
    if pipeline.has_rival and not any(state_names(commit)):
        check_author(tree, path, pipeline, batch, source)
    check_state(tree, path, pipeline, commit)


def made_since(tree: Tree, path: str, pipeline: PipelineState, batch: int) -> list[str]:
    """Return the files that are to become `commits/N` and were made since the pipeline's record, in their order."""
    made = [each for each in tree.temporaries.below(f"{path}/commits") if each.startswith(f"{path}/commits/.{batch}.")]
    return [each for each in made if (file := tree.file(each)) is not None and file.offset > pipeline.noted_at]


def check_author(tree: Tree, path: str, pipeline: PipelineState, batch: int, source: str) -> None:
    """Refuse a `commits/N` without state that another has made: the announcer's is the first since the announcement.

    A driver that wakes up after that may be quicker with its RENAME, but hardly with both.
    """
    if source not in made_since(tree, path, pipeline, batch)[:1]:
        raise RequestRefused.replaced(
            f"batch {batch} was announced by run {pipeline.caller.run}, and this commit is of a run that was replaced"
        )


def check_state(tree: Tree, path: str, pipeline: PipelineState, commit: bytes) -> None:
    """Refuse a `commits/N` that names only state from before the current run: it is of a run that was replaced.

    Who announced before the run took over had kept all of its state by then. But tasks can keep their state before any
    task of their run has called BEGIN: those without output, and those whose operator keeps it before the first row.
    Where all tasks did, that counts if the run's driver had started by then. Where a run before it had announced the
    same batch, nobody else must have kept state of the same version since: what the other has kept is not alone.
    """
    named = [(_kept_in(tree, path, each), each.id) for each in state_names(commit)]
    found = [(own, kept) for kept, name in named if (own := {file: kept[file] for file in kept if name in file})]
    if any(min(own.values()) > pipeline.began_at for own, _ in found):
        return
    for own, kept in found:
        versions = {_version(file) for file in own}
        others = [offset for file, offset in kept.items() if file not in own and _version(file) in versions]
        is_alone = not pipeline.has_rival or max(others, default=-1) <= pipeline.started_at
        if min(own.values()) <= pipeline.started_at or not is_alone:
            raise RequestRefused.replaced(
                f"this commit names state that was written before run {pipeline.caller.run} took over; "
                "it is of a run that was replaced"
            )


def _kept_in(tree: Tree, path: str, named: StateName) -> dict[str, int]:
    """Return the files of the partition of state that a commit names, and the offsets of their records."""
    operator, partition, _ = named
    folder = tree.find(f"{path}/state/{operator}/{partition}") if operator.isdigit() else None
    return {name: file.offset for name, file in _files(folder) if not is_temporary(name)}


def _files(folder: StoredFile | StoredDirectory | None, above: str = "") -> Iterator[tuple[str, StoredFile]]:
    """Yield the files of a partition of state, and of the stores in it, by their path in it."""
    if isinstance(folder, StoredDirectory):
        for name, each in folder.children.items():
            if isinstance(each, StoredFile):
                yield above + name, each
            elif name != "SSTs":
                yield from _files(each, f"{above}{name}/")


def _version(name: str) -> str:
    """Return a name without the unique id in it: `left/13_<id>.changelog`."""
    return name.rpartition("_")[0]
