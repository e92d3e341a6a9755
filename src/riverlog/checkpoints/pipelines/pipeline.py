"""The state of a pipeline: what its sink has announced about its batches. Pure: facts in, the next ones out.

    Begun ---------> Announced(batch, members) ---------> Prepared(announced, file)
      ^    ANNOUNCE                              RENAME              |
      +--------------------------------------------------------------+  decided, or refused

A run is one start of a query. The first call of a new run makes it the current one, and those before it are refused.
Prepared is the intention to commit, kept before the coordinator is asked: whoever finds it asks again, and gets the
same answer.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_RUNS_REMEMBERED_MAX
from riverlog.checkpoints.records import FileFacts, PipelineNoted, Unreadable, file_facts
from riverlog.model.limits import INCARNATION_LENGTH_MAX, MEMBERS_PER_BATCH_MAX

Member = tuple[int, int]
"""The producer id and epoch of a task's attempt."""

_NUMBER_MAX = 2**63 - 1
START_NOT_HEARD = _NUMBER_MAX
_PIPELINES = "/pipelines/"
ONLY_WRITE = ""
"""The name of a write that is the only one of its batch."""


class Caller(NamedTuple):
    """Who calls: Spark's query id, which stays with the checkpoint, and its run id, new at every start."""

    query: str
    run: str


@dataclass(frozen=True, slots=True)
class Begun:
    """No batch is announced."""


class AnnouncedWrite(NamedTuple):
    """One write of a batch, and the attempts of its tasks that count: a query's foreachBatch may have several."""

    id: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Announced:
    """All tasks of this batch have written, and these attempts of them count."""

    batch: int
    writes: tuple[AnnouncedWrite, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        """Return the attempts of all writes."""
        return tuple(member for write in self.writes for member in write.members)

    def joined_by(self, write: AnnouncedWrite) -> "Announced":
        """Add a write of the same batch, or replace what was said about it before."""
        others = tuple(each for each in self.writes if each.id != write.id)
        joined = replace(self, writes=(*others, write))
        if len(joined.members) > MEMBERS_PER_BATCH_MAX:
            raise RequestRefused.illegal(f"all writes of a batch have at most {MEMBERS_PER_BATCH_MAX:,} members")
        return joined

    def left_by(self, write_id: str) -> "Announced | None":
        """Leave a write out that is taken back; None where no other is left."""
        others = tuple(each for each in self.writes if each.id != write_id)
        return replace(self, writes=others) if others else None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The batch is to be committed with this file as `commits/N`, and the coordinator may have been asked."""

    announced: Announced
    file: FileFacts

    @property
    def marker(self) -> bytes:
        """Return what is left with the committed batch: it shows whether this file was the one."""
        return self.file.id.encode("ascii")


@dataclass(frozen=True, slots=True)
class PipelineState:
    """The current run of a pipeline, in whose name it writes, and how far its batch is."""

    caller: Caller
    owner: Member
    began_at: int
    """The offset of the last fact when the run began: what is older belongs to the runs before."""
    first_batch: int
    """The batch with which it began: the last one that a run before it may still try to commit."""
    replaced: tuple[str, ...] = ()
    step: Begun | Announced | Prepared = Begun()
    noted_at: int = -1
    """The offset of the record that says so."""
    started_at: int = START_NOT_HEARD
    """The offset of the last fact when the run's driver started: some of its state may be older than `began_at`."""
    has_rival: bool = False
    """Whether a run before it had announced the first batch too, and may wake up and commit it."""

    def check(self, caller: Caller) -> None:
        """Refuse a run that is not the current one."""
        if caller != self.caller:
            raise RequestRefused.replaced(
                f"run {caller.run} of this query was replaced by run {self.caller.run}; "
                "nothing that it writes from here on is kept"
            )

    def is_new(self, caller: Caller) -> bool:
        """Return whether this is a run that takes over; RequestRefused where it was replaced before."""
        if caller == self.caller:
            return False
        if caller.run in self.replaced or caller.run == self.caller.run:
            self.check(caller)
        return True

    def runs_replaced(self) -> tuple[str, ...]:
        """Name the runs that are refused once another has taken over from this one."""
        return (*self.replaced, self.caller.run)[-CHECKPOINT_RUNS_REMEMBERED_MAX:]

    def note(self, path: str, content: bytes = b"") -> PipelineNoted:
        """Return this as a fact; a prepared file's content goes with it."""
        facts: dict[str, Any] = {
            "query": self.caller.query,
            "run": self.caller.run,
            "owner": self.owner,
            "began_at": self.began_at,
            "started_at": self.started_at,
            "has_rival": self.has_rival,
            "first_batch": self.first_batch,
            "replaced": self.replaced,
        }
        step = self.step
        announced = step.announced if isinstance(step, Prepared) else step
        if isinstance(announced, Announced):
            facts |= {"batch": announced.batch, "members": announced.members}
            facts["writes"] = [[each.id, len(each.members)] for each in announced.writes]
        if isinstance(step, Prepared):
            facts["file"] = asdict(step.file)
        return PipelineNoted(path, facts, content)

    def at(self, step: Begun | Announced | Prepared) -> "PipelineState":
        return replace(self, step=step)


def name_of(path: str) -> str:
    """Return the name of the pipeline and of its group: its path, short where it lies in /pipelines."""
    short = path.removeprefix(_PIPELINES)
    return path if "/" in short else short


def transactional_id_of(path: str) -> str:
    return f"pipeline:{name_of(path)}"


def read_pipeline(facts: dict[str, Any]) -> PipelineState:
    """Read what `note` gave; Unreadable where it is nothing of the kind."""
    try:
        step: Begun | Announced | Prepared = Begun()
        if "batch" in facts:
            step = Announced(int(facts["batch"]), _writes(facts))
            if "file" in facts:
                step = Prepared(step, file_facts(facts["file"]))
        return PipelineState(
            Caller(str(facts["query"]), str(facts["run"])),
            members_of([facts["owner"]])[0],
            int(facts["began_at"]),
            int(facts["first_batch"]),
            tuple(map(str, facts["replaced"])),
            step,
            started_at=int(facts.get("started_at", START_NOT_HEARD)),
            has_rival=bool(facts.get("has_rival", True)),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError, RequestRefused) as problem:
        raise Unreadable(f"a pipeline: {problem}") from problem


def _writes(facts: dict[str, Any]) -> tuple[AnnouncedWrite, ...]:
    """Divide the members by the writes that they belong to."""
    members, begin, writes = members_of(facts["members"]), 0, []
    for name, count in facts.get("writes", [[ONLY_WRITE, len(members)]]):
        writes.append(AnnouncedWrite(str(name), members[begin : begin + int(count)]))
        begin += int(count)
    return tuple(writes)


def caller_of(call: dict[str, Any]) -> Caller:
    """Read who calls; RequestRefused where that is missing."""
    query, run = call.get("query"), call.get("run")
    for name in (query, run):
        if not isinstance(name, str) or not 0 < len(name) <= INCARNATION_LENGTH_MAX:
            raise RequestRefused.illegal("a call names its query and its run")
    return Caller(str(query), str(run))


def batch_of(call: dict[str, Any]) -> int:
    batch = call.get("batch")
    if not isinstance(batch, int) or isinstance(batch, bool) or not 0 <= batch <= _NUMBER_MAX:
        raise RequestRefused.illegal("a call names its batch, a number from 0 on")
    return batch


def write_of(call: dict[str, Any]) -> str:
    """Read which write of its batch a call is about: that of a query has one."""
    write = call.get("write", ONLY_WRITE)
    if not isinstance(write, str) or len(write) > INCARNATION_LENGTH_MAX:
        raise RequestRefused.illegal(f"a write has a name of at most {INCARNATION_LENGTH_MAX} characters")
    return write


def members_of(listed: Any) -> tuple[Member, ...]:
    """Read members, each a producer id and epoch."""
    if not isinstance(listed, list | tuple) or len(listed) > MEMBERS_PER_BATCH_MAX:
        raise RequestRefused.illegal(f"members are a list of at most {MEMBERS_PER_BATCH_MAX:,}")
    members = []
    for each in listed:
        if not isinstance(each, list | tuple) or len(each) != 2:
            raise RequestRefused.illegal("a member is a producer id and an epoch")
        producer_id, epoch = each
        if not all(isinstance(number, int) and 0 <= number <= _NUMBER_MAX for number in each) or epoch > 32_767:
            raise RequestRefused.illegal("a member is a producer id and an epoch")
        members.append((producer_id, epoch))
    return tuple(members)
