"""Valid inputs to begin from: every API in every version, batches with every codec, streams of whole frames."""

from random import Random

from riverlog.records.batch import Compression
from riverlog.records.compression import compress
from riverlog.records.record import BatchBuilder
from riverlog.wire.apis import APIS
from riverlog.wire.headers import encode_request
from tests.support.kio_oracle import random_message


def seeds_of(target: str, random: Random) -> list[bytes]:
    """Return valid inputs for a target."""
    match target:
        case "request":
            return [frame[4:] for frame in requests(random)]
        case "stream":
            frames = requests(random)
            return [bytes([random.randrange(256)]) + b"".join(random.sample(frames, 3)) for _ in range(50)]
        case "batch":
            return batches(random)
        case "columns":
            made = batches(random)
            return [*made, *(b"".join(random.sample(made, 3)) for _ in range(10))]
        case "layouts":
            return [bytes([1 + random.randrange(11)]) + random.randbytes(200) for _ in range(50)]
        case _:
            plain = [b"", b"a" * 70_000, random.randbytes(300), b"abc" * 200]
            return [bytes([codec]) + bytes(compress(codec, data)) for codec in Compression for data in plain]


def requests(random: Random, each: int = 3) -> list[bytes]:
    """Return frames with their lengths, some of every API and version."""
    return [
        encode_request(api, version, random.getrandbits(31), "fuzz", random_message(api.request, version, random))
        for api in APIS
        for version in api.versions
        for _ in range(each)
    ]


def batches(random: Random) -> list[bytes]:
    """Return batches as producers send them."""
    made = []
    for codec in Compression:
        for count in (1, 2, 40):
            builder = BatchBuilder(codec, producer_id=7, producer_epoch=0, base_sequence=random.randrange(100))
            for number in range(count):
                key = None if number % 3 == 0 else random.randbytes(5)
                headers = {"trace": random.randbytes(4), "none": None} if number % 2 else {}
                builder.append(key, random.randbytes(random.randrange(50)), headers, timestamp_ms=1_000 + number)
            made.append(bytes(builder.build()))
    return made
