"""A short simulation of clusters of whole nodes; the long one is `make sim ONLY=clusters`."""

import pytest

from tests.simulation.cluster.run import simulate_cluster

SEEDS_THAT_FOUND_SOMETHING = (5,)
"""A snapshot that was fetched while the node's own waited for a flush."""


@pytest.mark.parametrize("seed", [*range(3), *SEEDS_THAT_FOUND_SOMETHING])
def test_a_cluster_keeps_its_promises(seed: int) -> None:
    outcome = simulate_cluster(seed)
    assert outcome.violations == []
    assert outcome.counts["changes"] > 0
    assert outcome.counts["records"] > 0


def test_a_run_is_determined_by_its_seed() -> None:
    assert simulate_cluster(0) == simulate_cluster(0)
