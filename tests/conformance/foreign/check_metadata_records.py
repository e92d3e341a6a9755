"""Apache Kafka reads each metadata record that is written here, in each version, knows all of its fields, and writes
the same bytes."""

import subprocess
from pathlib import Path
from typing import Final

from riverlog.metadata.access_records import ACCESS_RECORD_TYPES
from riverlog.metadata.encoding import FRAME_VERSION, encode_record
from riverlog.metadata.records import RECORD_TYPES
from riverlog.wire.codec import encode_parts, joined
from riverlog.wire.primitives import varint_bytes
from tests.conformance.foreign.build import JAVA, class_path
from tests.unit.metadata.test_encoding import RECORDS

SOURCE: Final = Path(__file__).with_name("java") / "MetadataRecords.java"
SECONDS_MAX: Final = 60


def test_each_record_is_kafkas() -> None:
    written = [(type(record).__name__, encode_record(record).hex()) for record in RECORDS]
    for kind in (*RECORD_TYPES, *ACCESS_RECORD_TYPES):
        for version in range(kind.version + 1):
            frame = bytearray(b"".join(varint_bytes(each) for each in (FRAME_VERSION, kind.key, version)))
            data = joined(encode_parts(kind.declaration(), version, frame))
            written.append((kind.declaration.__name__, data.hex()))
    command = [*JAVA, "-cp", class_path(), str(SOURCE)]
    given = "".join(f"{data}\n" for _name, data in written)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    assert done.stdout.splitlines() == [f"{data} {name} 0" for name, data in written]
