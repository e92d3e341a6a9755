"""Descriptors are shared out so that all parts together stay below the limit."""

import pytest

from riverlog.log.limits import OPEN_SEGMENT_FILES_MAX
from riverlog.model.descriptors import DescriptorShares
from riverlog.model.limits import CHECKPOINT_CONNECTIONS_MAX, DESCRIPTORS_RESERVED_MAX


@pytest.mark.parametrize("limit", [128, 256, 1024, 4096, 20_000, 1024 * 1024])
def test_the_parts_leave_a_reserve(limit: int) -> None:
    shares = DescriptorShares.of(limit)
    parts = shares.connections + shares.checkpoint_connections + shares.segment_files
    assert min(64, limit // 2) <= limit - parts <= max(DESCRIPTORS_RESERVED_MAX, limit // 2)
    assert min(shares.connections, shares.checkpoint_connections, shares.segment_files) >= 1


def test_where_there_are_many_nobody_is_held_short() -> None:
    shares = DescriptorShares.of(20_000)
    assert shares.connections >= 10_000
    assert shares.segment_files > OPEN_SEGMENT_FILES_MAX
    assert shares.checkpoint_connections == CHECKPOINT_CONNECTIONS_MAX


def test_even_a_tiny_limit_leaves_one_of_each() -> None:
    assert DescriptorShares.of(10) == DescriptorShares(1, 1, 1)
