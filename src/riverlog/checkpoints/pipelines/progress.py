"""What the driver of a query reports about one run of it: its batches, and how it ended. Pure.

No batch is committed by a report, and nothing waits for one. A run is one start of a query; `runs` knows them all.
"""

import hashlib
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import PROGRESS_ERROR_LENGTH_MAX, PROGRESS_SILENT_MS_MAX
from riverlog.checkpoints.records import Unreadable
from riverlog.model.limits import INCARNATION_LENGTH_MAX

_NUMBER_MAX: Final = 2**63 - 1
_OF_THE_STORE: Final = frozenset({"heard_ms", "first_heard_ms", "late_rows_before", "proof"})
"""What no driver reports."""


class RunState(StrEnum):
    """What is known about a query's latest run."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Nobody has reported, or not for a while."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The latest report of a query."""

    query: str
    run: str
    state: RunState
    began_ms: int
    """When the run began, by the driver's clock."""
    heard_ms: int = 0
    """When the report came, by the store's clock."""
    first_heard_ms: int = 0
    """When the first report of this run came."""
    proof: str = ""
    """What only who knows the run's secret can show: the secret's SHA-256; empty where it has none."""
    ended_ms: int | None = None
    batch: int | None = None
    """The last batch that was reported; what follows is of it."""
    batch_at_ms: int | None = None
    batch_ms: int | None = None
    rows: int | None = None
    rows_per_second: float | None = None
    output_rows: int | None = None
    watermark_ms: int | None = None
    late_rows: int = 0
    """Rows that this run dropped because they came behind the watermark."""
    late_rows_before: int = 0
    """Those of the runs before it."""
    state_rows: int | None = None
    state_memory_bytes: int | None = None
    state_commit_ms: int | None = None
    error: str = ""
    """Why the last run that failed did."""
    error_ms: int | None = None

    def state_at(self, now_ms: int) -> RunState:
        """Return the state that is known now: a driver that runs reports all the time."""
        silent = now_ms - self.heard_ms > PROGRESS_SILENT_MS_MAX
        return RunState.UNKNOWN if self.state is RunState.RUNNING and silent else self.state

    def since_ms(self, now_ms: int) -> int:
        """Return since when it has had that state."""
        if self.state_at(now_ms) is RunState.UNKNOWN:
            return self.heard_ms
        return self.began_ms if self.ended_ms is None else self.ended_ms


def progress_of(call: dict[str, Any], *, heard_ms: int) -> RunProgress:
    """Read a driver's report; RequestRefused where it is none."""
    known = {each.name for each in fields(RunProgress)} - _OF_THE_STORE
    secret = call.get("secret", "")
    if not isinstance(secret, str) or len(secret) > INCARNATION_LENGTH_MAX:
        raise RequestRefused.illegal("secret is a text")
    report = {name: value for name, value in call.items() if name in known and value is not None}
    try:
        report["state"] = RunState(report.get("state", ""))
    except ValueError:
        raise RequestRefused.illegal("state is running, stopped or failed") from None
    for name in ("query", "run"):
        if not isinstance(report.get(name), str) or not 0 < len(report[name]) <= INCARNATION_LENGTH_MAX:
            raise RequestRefused.illegal("a report names its query and its run")
    if not isinstance(report.get("error", ""), str):
        raise RequestRefused.illegal("error is a text")
    report["error"] = report.get("error", "")[:PROGRESS_ERROR_LENGTH_MAX]
    for name, value in report.items():
        if name not in ("query", "run", "state", "error") and not _is_number(value, name):
            raise RequestRefused.illegal(f"{name} is a number from 0 on")
    if "began_ms" not in report:
        raise RequestRefused.illegal("a report says when its run began")
    proof = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest() if secret else ""
    return RunProgress(**report, heard_ms=heard_ms, proof=proof)


def read_progress(facts: dict[str, Any]) -> RunProgress:
    """Read a report that was written down; Unreadable where it is nothing of the kind."""
    try:
        report = progress_of(facts, heard_ms=int(facts["heard_ms"]))
        return replace(
            report,
            late_rows_before=int(facts["late_rows_before"]),
            first_heard_ms=int(facts.get("first_heard_ms", report.heard_ms)),
            proof=str(facts.get("proof", "")).encode("ascii", "replace").decode(),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError, RequestRefused) as problem:
        raise Unreadable(f"a report: {problem}") from problem


def _is_number(value: object, name: str) -> bool:
    kinds = (int, float) if name == "rows_per_second" else (int,)
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value <= _NUMBER_MAX
