"""Leaders on request."""

from riverlog.metadata.commands.leaders import ElectLeaders
from riverlog.model.errors import ErrorCode
from tests.unit.metadata.active_cluster import ActiveCluster


def test_only_those_that_need_one_are_named_where_all_are_meant() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 3, (1, 2), (2, 1), (2, 1))
    assert cluster.do(ElectLeaders(unclean=False)).results == ()
    cluster.beat(2, want_fence=True)
    cluster.beat(2)
    results = cluster.do(ElectLeaders(unclean=False)).results
    assert [each.partition for each in results] == [1, 2]
    assert {each.outcome.code for each in results} == {ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_one_that_nobody_leads_is_not_led_by_the_preferred_either() -> None:
    cluster = ActiveCluster(None, None)
    cluster.create("orders", 2, (1,), (2,))
    cluster.beat(1, want_fence=True)
    for unclean, code in (
        (False, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (True, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        results = cluster.do(ElectLeaders(unclean=unclean)).results
        assert [(each.partition, each.outcome.code) for each in results] == [(0, code)]


def test_all_that_need_a_leader_are_elected_in_slices() -> None:
    cluster = ActiveCluster(None, None)
    for topic in ("a", "b", "c"):
        cluster.create(topic, 3, (1,), (2,), (1,))
    cluster.beat(1, want_fence=True)
    for unclean in (True, False):
        found, behind = list[tuple[str, int]](), None
        for _ in range(4):
            slice_ = cluster.do(ElectLeaders(unclean, behind=behind, partitions_max=2))
            found += [(each.topic, each.partition) for each in slice_.results]
            behind = slice_.goes_on_behind
        assert found == [(topic, index) for topic in "abc" for index in (0, 2)]
        assert behind is None


def test_a_partition_that_is_named_twice_is_elected_once() -> None:
    cluster = ActiveCluster(None)
    cluster.create("orders", 1, (1,))
    results = cluster.do(ElectLeaders(unclean=False, partitions=(("orders", 0), ("orders", 0)))).results
    assert [each.outcome.code for each in results] == [ErrorCode.ELECTION_NOT_NEEDED]
