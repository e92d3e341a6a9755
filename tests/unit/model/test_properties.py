"""Java's properties files, as Kafka's configuration is written."""

import pytest

from riverlog.model.properties import line_numbers, read_properties
from riverlog.model.setting import BadSetting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb : 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("# no\n! no\n\n  a = b = c  \n", {"a": "b = c"}),
        ("list=x,\\\n   y\n", {"list": "x,y"}),
        ("path=C:\\\\logs\nsnow=\\u2603\ntab=a\\tb", {"path": "C:\\logs", "snow": "☃", "tab": "a\tb"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("empty=", {"empty": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("last=x\\", {"last": "x"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text, expected):
    assert read_properties(text) == expected


@pytest.mark.parametrize("text", ["=value", "a=\\u12"])
def test_broken_properties_name_their_line(text):
    with pytest.raises(BadSetting, match="Line 1"):
        read_properties(text)


def test_each_name_has_its_line():
    text = "# comment\na=1\n\nlist=x,\\\n   y\nb : 2\na=3\nlast=x\\"
    assert line_numbers(text) == {"a": 7, "list": 4, "b": 6, "last": 8}
