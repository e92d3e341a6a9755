"""Lines that are true to the event, and that no client can forge."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from riverlog.observe.limits import LOG_FIELD_CHARACTERS_MAX, LOG_LINES_PER_EVENT_AND_SECOND_MAX
from riverlog.observe.logging import JsonFormatter, Logger, RateLimitFilter, TextFormatter, configure, get_logger


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Put the process's loggers back after a test has configured them."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def written(formatter: logging.Formatter, event: str, cause: BaseException | None = None, **fields: object) -> str:
    """Return the line that one error event becomes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.Logger("riverlog.test")
    logger.addHandler(handler)
    Logger(logger).error(event, cause=cause, **fields)
    return stream.getvalue()


def test_a_file_gets_json() -> None:
    line = json.loads(
        written(JsonFormatter(), "connection closed", peer="10.0.0.1", bytes=17, ratio=0.5, tls=False, id=None)
    )
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "error",
        "logger": "riverlog.test",
        "event": "connection closed",
        "peer": "10.0.0.1",
        "bytes": 17,
        "ratio": 0.5,
        "tls": False,
        "id": None,
    }


def test_a_terminal_gets_text() -> None:
    line = written(
        TextFormatter(colour=False), "topic created", topic="orders", partitions=3, client="my app", empty=""
    )
    assert line.endswith(' error   topic created topic=orders partitions=3 client="my app" empty=""\n')


def test_colour_marks_the_level() -> None:
    assert "\x1b[31merror" in written(TextFormatter(colour=True), "disk failed")


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter(colour=False)])
@pytest.mark.parametrize("hostile", ["a\nb", "a\r\nb", "\x1b[2J", "\x00", "\u202eevil", "\x9b31m", "a\u2028b"])
def test_clients_cannot_write_lines_or_commands(formatter: logging.Formatter, hostile: str) -> None:
    line = written(formatter, "request refused", client_id=hostile)
    assert line.count("\n") == 1
    assert line.rstrip("\n").isprintable()


def test_a_long_field_is_cut() -> None:
    line = json.loads(written(JsonFormatter(), "request refused", client_id="x" * 50_000))
    assert len(line["client_id"]) < LOG_FIELD_CHARACTERS_MAX + 50
    assert line["client_id"].endswith("(50000 characters)")


def test_a_cause_is_written_with_its_traceback() -> None:
    def fail() -> None:
        raise OSError("disk on fire")

    try:
        fail()
    except OSError as error:
        as_json = json.loads(written(JsonFormatter(), "flush failed", cause=error))
        as_text = written(TextFormatter(colour=False), "flush failed", cause=error)
    assert "in fail" in as_json["trace"]
    assert "\n" in as_json["trace"]
    assert as_text.rstrip().endswith("OSError: disk on fire")
    assert len(as_text.splitlines()) > 3


def test_a_flood_is_thinned_and_counted() -> None:
    gate = RateLimitFilter()

    def passes(event: str, created: float) -> logging.LogRecord | None:
        record = logging.makeLogRecord({"name": "riverlog", "msg": event, "created": created, "fields": {}})
        return record if gate.filter(record) else None

    shown = [passes("connection refused", 5.5) for _ in range(1_000)]
    assert sum(record is not None for record in shown) == LOG_LINES_PER_EVENT_AND_SECOND_MAX
    assert passes("topic created", 5.6) is not None
    later = passes("connection refused", 6.0)
    assert later is not None
    assert later.__dict__["fields"] == {"like_this_not_shown": 1_000 - LOG_LINES_PER_EVENT_AND_SECOND_MAX}
    assert passes("connection refused", 7.0).__dict__["fields"] == {}


def test_the_stream_decides_the_form(root: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    piped, terminal = io.StringIO(), Terminal()
    for stream in (piped, terminal):
        configure(stream)
        get_logger("riverlog.node").info("ready", port=9092)
        get_logger("riverlog.node").debug("details")
    assert json.loads(piped.getvalue())["event"] == "ready"
    assert terminal.getvalue().endswith(" info    ready port=9092\n")
