"""Counts of a node's share in the quorum."""

from riverlog.observe.quorum_stats import QuorumStats


def test_each_kind_is_counted_by_itself() -> None:
    stats = QuorumStats()
    stats.commits.observe(0.01)
    assert [sum(each.counts) for each in (stats.commits, stats.elections, stats.queue)] == [1, 0, 0]
