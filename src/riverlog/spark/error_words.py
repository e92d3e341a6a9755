"""What Spark says about a failure, in one plain line: no condition names, no SQLSTATE, no plan, no frames of Java.

Spark's messages are long, and each layer adds its own: `[STREAM_FAILED] Query … terminated with exception: …`, the
trace of a Python worker, the stack of the JVM. What a reader wants of it is what was raised first, and in which line of
his own. All of it is text here, so the words may also come from another machine.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

HELPER: Final = "_riverlog"
"""How the names of columns begin that a pipeline adds for itself; nobody should be told of them."""

_PLAN: Final = "\n=== Streaming Query ==="
_TRACEBACK: Final = "Traceback (most recent call last):"
_WORDS_MAX: Final = 300
_CALLING: Final = re.compile(r"An error occurred while calling [\w.$:]+\.?$")
_JAVA_CLASS: Final = re.compile(r"(?:: )?(?:[a-z]\w*\.){2,}[A-Z][\w$]*: ")
_CONDITION: Final = re.compile(r"\[[A-Z][A-Z_0-9.]+\] ")
_STREAM_FAILED: Final = re.compile(r"Query \S*(?: ?\[id = [^\]]*\])? terminated with exception: ")
_SQLSTATE: Final = re.compile(r"\.? SQLSTATE: \w{5}.*$")
_OWN_CLASS: Final = re.compile(r"riverlog(?:\.\w+)+: ")
_FRAME: Final = re.compile(r'\s*File "([^"]+)", line (\d+)')
_FOREIGN_FRAME: Final = re.compile(r"/(?:site|dist)-packages/|/riverlog/|/lib/python3|/pyspark/|^<frozen ")
_NO_COLUMN: Final = re.compile(r"\bwith name (`.*?`) cannot be resolved\.?(?:.*?following\? \[(.*?)\])?", re.DOTALL)
_SQL: Final = re.compile(r"^== SQL ==\n(.*?)\n-*\^", re.MULTILINE | re.DOTALL)
_NO_FUNCTION: Final = re.compile(r"Cannot resolve routine (`.*?`) on")


def reason(message: str) -> str:
    """Return why something failed in one line: of a Python trace what was raised, and where in a user's own file."""
    lines = [line for line in message.partition(_PLAN)[0].splitlines() if not line.startswith("\tat ")]
    traces = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    place = ""
    if traces:  # the trace is indented, and what was raised stands behind it
        trace = lines[traces[-1] + 1 :]
        raised = [line for line in trace if line[:1].strip()]
        place, lines = _place(trace) if raised else "", raised or lines
    first = next((line.strip() for line in lines if line.strip() and not _CALLING.match(line.strip())), "")
    words = plain(first)
    return (words if len(words) <= _WORDS_MAX else f"{words[:_WORDS_MAX]}…") + place


def plain(line: str) -> str:
    """Return one line of Spark's without what is only for machines: classes, conditions, SQLSTATE."""
    before = ""
    while before != line:
        before = line
        for prefix in (_JAVA_CLASS, _CONDITION, _STREAM_FAILED, _OWN_CLASS):
            line = prefix.sub("", line, count=1) if prefix.match(line) else line
    return _SQLSTATE.sub("", line)


def mistake(message: str) -> str:
    """Return what is wrong with a step of a stream: which column or function is missing, or where its SQL ends."""
    if missing := _NO_COLUMN.search(message):
        name = _unquoted(missing[1])
        there = [_unquoted(other) for other in (missing[2] or "").split(", ") if HELPER not in other and other]
        return f"there is no column {name}{_alternatives(get_close_matches(name, there, n=1) or there)}"
    if unknown := _NO_FUNCTION.search(message):
        return f"there is no function {_unquoted(unknown[1])}"
    sql = _SQL.search(message)
    return reason(message) + (f", in {sql[1]!r}" if sql else "")


def _alternatives(names: Sequence[str]) -> str:
    return f"; did you mean {' or '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)}?" if names else ""


def _unquoted(name: str) -> str:
    return name.replace("`", "")


def _place(trace: Sequence[str]) -> str:
    """Return the last line of a trace that is of a user's own file, in brackets."""
    frames = [found for line in trace if (found := _FRAME.match(line)) and not _FOREIGN_FRAME.search(found[1])]
    return f" ({frames[-1][1].rpartition('/')[2]}, line {frames[-1][2]})" if frames else ""
