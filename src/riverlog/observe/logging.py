"""One line per event that an operator cares about: readable on a terminal, JSON everywhere else.

An event is a short fixed sentence of ours; everything that varies is a field. Fields may hold text that a client
made up, so control characters are escaped, long values cut, and a flood of the same event is thinned out to a
count. Lines go through the standard library's loggers, so that a program that runs a node inside itself keeps
its own say; `configure` is for the process that is a node. See docs/adr/0006-log-lines-by-hand.md.
"""

import json
import logging
import os
import time
import traceback
from typing import Final, TextIO

from riverlog.observe.limits import LOG_EVENTS_COUNTED_MAX, LOG_FIELD_CHARACTERS_MAX, LOG_LINES_PER_EVENT_AND_SECOND_MAX


class Logger:
    """Writes events under one name: `log.warning("connection refused", peer=peer)`."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        """Log what only somebody who searches for a fault wants to know."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log what happened."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what is odd, while the node goes on."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, *, cause: BaseException | None = None, **fields: object) -> None:
        """Log what no longer works; `cause` is written with its traceback."""
        self._write(logging.ERROR, event, fields, cause)

    def _write(self, level: int, event: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"fields": fields}, exc_info=cause)


def get_logger(name: str) -> Logger:
    """Return the logger of one part of the node: `riverlog.server`."""
    return Logger(logging.getLogger(name))


def configure(stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send all lines of this process to `stream`, as text for a terminal, as JSON for a program."""
    handler = logging.StreamHandler(stream)
    on_terminal = stream.isatty()
    handler.setFormatter(TextFormatter(colour="NO_COLOR" not in os.environ) if on_terminal else JsonFormatter())
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(handlers=[handler], level=level, force=True)


class JsonFormatter(logging.Formatter):
    """One JSON object per line, in ASCII: no field can start a line of its own or hide in one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {name: _plain(value) for name, value in _fields(record).items()}
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """Time, level, event and fields in columns for the eye."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname.lower():<7}"
        if self._colour:
            level = f"\x1b[{_COLOURS.get(record.levelno, '0')}m{level}\x1b[0m"
        fields = _fields(record)
        trace = fields.pop("trace", None)
        words = [time.strftime("%H:%M:%S", time.localtime(record.created)), level, _quiet(record.getMessage())]
        words += [f"{name}={_quoted(value)}" for name, value in fields.items()]
        if isinstance(trace, str):
            words += [f"\n  {_quiet(line)}" for line in trace.splitlines()]
        return " ".join(words)


class RateLimitFilter(logging.Filter):
    """Passes a bounded number of lines per event and second; the next line says how many were dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[int, int]] = {}  # event -> second, lines in that second

    def filter(self, record: logging.LogRecord) -> bool:
        if len(self._seen) > LOG_EVENTS_COUNTED_MAX:
            self._seen.clear()
        event = (record.name, str(record.msg))
        second, lines = self._seen.get(event, (0, 0))
        now = int(record.created)
        if now != second:
            held = lines - LOG_LINES_PER_EVENT_AND_SECOND_MAX
            if held > 0:
                record.__dict__.setdefault("fields", {})["like_this_not_shown"] = held
            second, lines = now, 0
        self._seen[event] = (second, lines + 1)
        return lines < LOG_LINES_PER_EVENT_AND_SECOND_MAX


_COLOURS: Final = {logging.DEBUG: "2", logging.INFO: "32", logging.WARNING: "33", logging.ERROR: "31"}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of an event, and the traceback of its cause as one of them."""
    fields: dict[str, object] = dict(getattr(record, "fields", {}))
    if record.exc_info and record.exc_info[1] is not None:
        fields["trace"] = "".join(traceback.format_exception(record.exc_info[1]))
    return fields


def _plain(value: object) -> object:
    """Keep what JSON has a form for; everything else becomes text, cut where it gets long."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    if len(text) <= LOG_FIELD_CHARACTERS_MAX:
        return text
    return f"{text[:LOG_FIELD_CHARACTERS_MAX]}… ({len(text)} characters)"


def _quoted(value: object) -> str:
    """Show a value so that it cannot be mistaken for two."""
    plain = _plain(value)
    if not isinstance(plain, str):
        return json.dumps(plain)
    return plain if plain.isprintable() and plain and not set(plain) & set(' "=') else _quiet(json.dumps(plain))


def _quiet(text: str) -> str:
    """Escape what a terminal would act upon instead of showing."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
