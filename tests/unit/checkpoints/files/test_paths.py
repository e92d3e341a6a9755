"""Paths: what is one, and how two of them lie to each other."""

import pytest

from riverlog.checkpoints.files.paths import (
    Location,
    LogFile,
    are_related,
    is_temporary,
    log_file_of,
    parse_location,
    parse_path,
    related_to_any,
)
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_PATH_BYTES_MAX


@pytest.mark.parametrize(
    ("quoted", "path"),
    [
        (b"/", "/"),
        (b"/a/b", "/a/b"),
        (b"//a///b/", "/a/b"),
        (b"/a%20b/%C3%A4", "/a b/ä"),
        (b"/a%2Fb", "/a/b"),
        (b"/..a/.b", "/..a/.b"),
    ],
)
def test_a_path_is_read(quoted: bytes, path: str) -> None:
    assert parse_path(quoted) == path


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("webhdfs://node:9870/pipelines/50%20 #1?", Location("webhdfs", "node:9870", "/pipelines/50%20 #1?")),
        ("webhdfs://node", Location("webhdfs", "node", "")),
        ("file:///tmp/a%20b", Location("file", "", "/tmp/a%20b")),
        ("file:/tmp/a#b", Location("file", "", "/tmp/a#b")),
        ("/tmp/a:b", Location("", "", "/tmp/a:b")),
        ("orders", Location("", "", "orders")),
        ("", Location("", "", "")),
    ],
)
def test_a_location_is_no_url(text: str, location: Location) -> None:
    assert parse_location(text) == location


@pytest.mark.parametrize(
    "quoted",
    [
        b"",
        b"a/b",
        b"/a/../b",
        b"/a/%2e%2e/b",
        b"/%2E/b",
        b"/a%00b",
        b"/a%0d%0ab",
        b"/%ff%fe",
        b"/" + b"a" * CHECKPOINT_PATH_BYTES_MAX,
        b"/a" * 65,
    ],
)
def test_what_is_no_path_is_refused(quoted: bytes) -> None:
    with pytest.raises(RequestRefused) as refused:
        parse_path(quoted)
    assert refused.value.name == "IllegalArgumentException"


def test_paths_are_related_when_one_lies_below_the_other() -> None:
    assert are_related("/a/b", "/a/b")
    assert are_related("/a", "/a/b")
    assert are_related("/a/b", "/")
    assert not are_related("/a/b", "/a/bc")
    assert not related_to_any(["/a", "/b"], ["/c"])
    assert related_to_any(["/a", "/b"], ["/c", "/b/d"])


def test_spark_names_temporary_files_so() -> None:
    assert is_temporary("/p/offsets/.12.1b4e28ba.tmp")
    assert is_temporary("/p/state/0/1/.13_u.changelog.v.TID38.tmp")
    assert not is_temporary("/p/offsets/12")
    assert not is_temporary("/.tmp/a")


def test_files_of_a_log_are_numbered() -> None:
    assert log_file_of("/pipelines/orders/commits/12") == LogFile("/pipelines/orders", "commits", 12)
    for path in (
        "/commits/1",
        "/p/commits/.1.tmp",
        "/p/commits/x",
        "/p/commits/²",
        "/p/commits/" + "1" * 19,
        "/p/commits/01",
    ):
        assert log_file_of(path) is None
