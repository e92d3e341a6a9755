"""The kernel hashes keys as every client does. What it writes is compared with the plain encoder by property tests."""

import numpy as np
import pytest
from numba import njit

from riverlog.arrow.decoding import kernel
from riverlog.arrow.encoding import kernel as encode_kernel
from riverlog.client.producer.partitioner import murmur2


@njit  # type: ignore[untyped-decorator]
def hashed(data: kernel.Bytes) -> int:
    found: int = encode_kernel.murmur2(kernel.address_of(data), data.shape[0])
    return found


@pytest.mark.parametrize("length", [*range(20), 255, 1_000])
def test_keys_are_hashed_alike(length: int) -> None:
    data = bytes((7 * place + 251) & 0xFF for place in range(length))
    assert hashed(np.frombuffer(data, np.uint8)) == murmur2(data)
