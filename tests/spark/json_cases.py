"""Values that are JSON, for the source and for Spark's `from_json`, and where the two are known to differ."""

from random import Random
from typing import Final

ZONES: Final = ("Europe/Berlin", "America/New_York", "+05:30", "UTC")

TIMES: Final = (
    '"2024-01-01"',
    '"2024-01-01T10:00"',
    '"2024-07-01T10:00:00"',
    '"2024-07-01 10:00:00.5"',
    '"2024-03-31T02:30:00"',
    '"2024-10-27T02:30:00"',
    '"2024-03-10T02:30:00"',
    '"1890-01-01T00:00:00"',
    '"1582-10-10"',
    '"0001-01-01T00:00:00"',
    '"2050-07-01T10:00:00"',
    '"9999-12-31T23:59:59.999999"',
    '"2024-01-01T10:00:00Z"',
    '"2024-01-01T10:00:00+02:00"',
    '"2024-01-01T10:00:00+0200"',
    '"2024-01-01T10:00:00-18:00"',
    '"2024-01-01T10:00:00+19:00"',
    '"2024-01-01T10:00:00.123456789Z"',
    '"2024-01-01T10:00:00.123456789"',
    '"2024-01-01T10:00:00z"',
    '"2024-01-01T24:00:00"',
    '"2024-01-01T23:59:60"',
    '"2024-02-30"',
    '""',
    '"now"',
    "1.5",
    "null",
)

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "a bigint": (
        "1",
        "-0",
        "-9223372036854775808",
        "9223372036854775808",
        "1.0",
        "1e2",
        '"1"',
        "true",
        "01",
        "NaN",
        "null",
    ),
    "a int": ("2147483647", "2147483648", "-2147483649"),
    "a smallint": ("32767", "32768"),
    "a tinyint": ("127", "-129"),
    "a double": (
        "1",
        "1.5",
        "0.1",
        "1e-400",
        "-0.0",
        "12345678901234567890",
        "NaN",
        "-Infinity",
        "true",
        ".5",
        '"1.5"',
    ),
    "a float": ("0.1", "16777217", "1e39", '"NaN"', '"-Infinity"'),
    "a double, b string, c array<double>": (
        '"NaN", "b": "NaN", "c": ["Infinity", 1, null]',
        '"+INF"',
        '"-INF"',
        '"INF"',
    ),
    "a string": ('"x"', '"\\u0041\\/"', '"\\ud83d\\ude00"', '"\\u0000"', '""', "null", '"\\x"', '"NaN"'),
    "a boolean": ("true", "false", "null", "1", '"true"', "True"),
    "a decimal(10,2)": ("1", "1.5", '"1.5"', "1e2", "-1.50", "99999999999", "true"),
    "a decimal(38,10)": ("1", "-0.0000000001", "1234567890123456789012345678", "-385932991387775705813049295466485050"),
    "a binary": (
        '"YWI="',
        '"++//"',
        '""',
        '"abc"',
        '"YWI"',
        '"YW\\nI="',
        '"-_"',
        '"ä"',
        '"="',
        '"YWJ="',
        "1",
    ),
    "a date": ('"2024-01-01"', '"1582-10-10"', '"9999-12-31"', '"2024-02-30"', "1", '""'),
    "a timestamp": TIMES,
    "a timestamp_ntz": (*TIMES, "1700000000"),
    "a array<bigint>": ("[1,2]", "[]", "[null]", "null", "1", "{}", '[1,"x"]'),
    "a array<struct<at: timestamp, b: binary, d: date>>": (
        '[{"at":"2024-07-01T10:00:00","b":"YWI=","d":"2024-01-01"},null,{}]',
        "[]",
        "null",
    ),
    "a struct<b: bigint, c: array<timestamp>>": (
        '{"b":1,"c":["2024-07-01 10:00:00",null]}',
        "{}",
        "null",
        '{"B":1}',
        "[1]",
    ),
}
"""What stands at a field `a`."""

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "a bigint": (
        '{"a":1} ',
        ' {"a":1}',
        "{}",
        '{"A":1}',
        '{"\\u0061":1}',
        '{"b":1}',
        '{"a":1,"b":{"c":[1,2,{"d":"}"}]}}',
        '{"a":1,"b":NaN}',
        "[]",
        "",
        "1",
        "null",
        "{a:1}",
        '{"a":1,}',
        '{"a":1 /* c */}',
        '\ufeff{"a":1}',
        '{"a":1',
    )
}
"""Whole values."""

REFUSED: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "a number, a truth, an object or an array for a `STRING`": (
        ("a string", '{"a":1}'),
        ("a string", '{"a":true}'),
        ("a string", '{"a":{"b":1}}'),
        ("a string", '{"a":[1,2]}'),
    ),
    "a field that comes twice": (("a bigint", '{"a":1,"a":2}'), ("a struct<b: int>", '{"a":{"b":1,"b":2}}')),
    "text after the object, or quotes that are `'`": (
        ("a bigint", '{"a":1}x'),
        ("a bigint", '{"a":1}{"a":2}'),
        ("a bigint", "{'a':1}"),
    ),
    "half of a surrogate pair": (("a string", '{"a":"\\ud800"}'), ("a bigint", '{"a":1,"b":"\\ud800"}')),
    "a number that no `DOUBLE` holds": (("a double", '{"a":1e400}'), ("a bigint", '{"a":1,"b":1e999}')),
    "a `DECIMAL` with more digits after the point than the type has": (
        ("a decimal(10,2)", '{"a":1.555}'),
        ("a decimal(38,10)", '{"a":0.00000000001}'),
    ),
    "bytes after the padding of a `BINARY`": (("a binary", '{"a":"YWI=YWI="}'),),
    "a `TINYINT` of 128 to 255": (("a tinyint", '{"a":128}'),),
    "a `TIMESTAMP` or `DATE` in another form: a number, `2024-1-1`, `2024`, a time alone, the name of a zone": (
        ("a timestamp", '{"a":1700000000}'),
        ("a timestamp", '{"a":"2024-1-1"}'),
        ("a timestamp", '{"a":"2024"}'),
        ("a timestamp", '{"a":"10:00:00"}'),
        ("a timestamp", '{"a":"2024-01-01T10:00:00 Europe/Berlin"}'),
        ("a timestamp", '{"a":" 2024-01-01 "}'),
        ("a timestamp", '{"a":"1890-01-01T00:00:00.000+00:53:28"}'),
        ("a date", '{"a":"2024-1-1"}'),
        ("a date", '{"a":"2024-01-01T10:00:00"}'),
    ),
    "years that have not four digits, and the year 0": (
        ("a timestamp", '{"a":"+10000-01-01T00:00:00Z"}'),
        ("a timestamp", '{"a":"0000-01-01"}'),
        ("a date", '{"a":"-0001-01-01"}'),
    ),
}
"""What `from_json` reads and the source does not, under the words of docs/spark.md."""


def cases() -> list[tuple[str, str]]:
    """Return schemas and values that both read alike, or of which the source takes none that `from_json` does not."""
    fields = [(ddl, f'{{"a": {text}}}') for ddl, texts in FIELDS.items() for text in texts]
    return fields + [(ddl, value) for ddl, values in VALUES.items() for value in values]


def random_cases(random: Random, count: int) -> list[tuple[str, str]]:
    """Make values of numbers, texts and times at random, for schemas at random."""
    return [(random.choice(_SCHEMAS), f'{{"a":{_json(random, 2)}}}') for _ in range(count)]


_SCHEMAS: Final = tuple(dict.fromkeys([*FIELDS, "a array<string>", "a struct<b: string, c: double>"]))
_SCALARS: Final = ("null", "true", "false", '"x"', '"NaN"', '""', *TIMES)


def _json(random: Random, depth: int) -> str:
    match random.randrange(8 if depth else 6):
        case 0:
            return random.choice(_SCALARS)
        case 1:
            return str(random.randint(-(10 ** random.randrange(1, 40)), 10 ** random.randrange(1, 40)))
        case 2:
            return f"{random.uniform(-1e3, 1e3):.{random.randrange(1, 20)}f}"
        case 3:
            return (
                f"{random.randint(-99, 99)}{random.choice('eE')}{random.choice(['', '+', '-'])}{random.randrange(400)}"
            )
        case 4:
            year, month, day = random.randrange(1, 10_000), random.randrange(1, 14), random.randrange(1, 32)
            hour, digits = random.randrange(25), "." + str(random.randrange(10**9)) if random.randrange(2) else ""
            zone = random.choice(["", "", "Z", "+02:00", "-0330", "+17", "UTC"])
            return f'"{year:04}-{month:02}-{day:02}{random.choice("T ")}{hour:02}:30:15{digits}{zone}"'
        case 5:
            letters = "".join(random.choice('abYWI=+/-_ \\"\\n\\\\äé€') for _ in range(random.randrange(9)))
            return f'"{letters}"'
        case 6:
            return f"[{','.join(_json(random, depth - 1) for _ in range(random.randrange(3)))}]"
        case _:
            names = [name for name in ("b", "c", "B") if random.randrange(2)]
            pairs = [f'"{name}":{_json(random, depth - 1)}' for name in names]
            return f"{{{','.join(pairs)}}}"
