"""Simulate many seeds, or one: `python -m tests.simulation --seeds 200`, `--seed 17`. Exit code 1 on a violation.

Seeds are plain, with groups, with transactions, and with topics that come and go, in turn; `--only` runs plans of one
kind. `--only quorum` runs quorums of Raft machines alone instead, a hundred times as fast; `--only controllers` the
controllers that drive them, with their disks; `--only clusters` whole nodes, each with a loop of its own.

Of a seed that fails, the plan, the violations and a plan made smaller are printed. `--switches` shows instead that
each rule of durability is missed when it is switched off.
"""

import argparse
import hashlib
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from riverlog.model.errors import InvariantBroken
from tests.simulation.cluster import switches as cluster_switches
from tests.simulation.cluster.run import ClusterOutcome, simulate_cluster
from tests.simulation.cluster.run import shrink as shrink_cluster
from tests.simulation.crash_points import wrong_at_crash_points
from tests.simulation.plan import Plan, draw_plan, with_churn, with_groups, with_rot
from tests.simulation.quorum import switches as quorum_switches
from tests.simulation.quorum.drivers import simulate_drivers
from tests.simulation.quorum.run import QuorumOutcome, simulate_quorum
from tests.simulation.run import simulate
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.scene import Outcome
from tests.simulation.shrink import shrink
from tests.simulation.switches import SWITCHES, noticed, noticed_without
from tests.simulation.syncs import places
from tests.simulation.transaction_plan import draw_transactions

_STEPS_WITH_GROUPS: Final = 110
"""Members are at work between the steps, too: fewer of them take as long."""


_QUORUMS: Final[dict[str, Callable[[int], QuorumOutcome]]] = {
    "quorum": simulate_quorum,
    "controllers": simulate_drivers,
    "clusters": simulate_cluster,
}
_KINDS: Final[dict[str, Callable[[int], Plan]]] = {
    "plain": lambda seed: with_rot(draw_plan(seed)) if seed % 4 == 3 else draw_plan(seed),
    "groups": lambda seed: with_groups(draw_plan(seed, steps=_STEPS_WITH_GROUPS)),
    "transactions": draw_transactions,
    "churn": lambda seed: with_churn(draw_plan(seed, steps=_STEPS_WITH_GROUPS)),
}


def _plan_of(seed: int, only: str | None) -> Plan:
    """Return a seed's plan: of the kind that is wanted, or of each kind in turn; in some plain ones bits rot."""
    return _KINDS[only or list(_KINDS)[seed % len(_KINDS)]](seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim")
    parser.add_argument("--seeds", type=int, default=50, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="run this seed alone and print what happened")
    parser.add_argument("--only", choices=[*_KINDS, *_QUORUMS], help="run plans of this kind only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to run them in")
    parser.add_argument("--switches", action="store_true", help="switch off each rule of durability in turn")
    given = parser.parse_args()
    logging.getLogger("riverlog").setLevel(logging.CRITICAL + 1)
    if given.switches:
        return _show_switches(given.jobs)
    if given.only in _QUORUMS:
        first = given.first if given.seed is None else given.seed
        seeds = range(first, first + (given.seeds if given.seed is None else 1))
        return _run_quorums(_QUORUMS[given.only], seeds, given.jobs)
    if given.seed is not None:
        return _replay(given.seed, given.only)
    return _run_many(range(given.first, given.first + given.seeds), given.jobs, given.only)


def _run_quorums(simulation: Callable[[int], QuorumOutcome], seeds: range, jobs: int) -> int:
    began, totals, failed = time.monotonic(), Counter[str](), list[QuorumOutcome]()
    with multiprocessing.Pool(jobs, initializer=_be_quiet) as pool:
        for done, outcome in enumerate(pool.imap(partial(_quorum, simulation), seeds), start=1):
            totals += outcome.counts
            if outcome.violations:
                failed.append(outcome)
                print(f"seed {outcome.seed} FAILED: {outcome.violations[0]}", flush=True)
            if done % 500 == 0 or done == len(seeds):
                print(_quorum_summary(done, totals, len(failed), time.monotonic() - began), flush=True)
    for outcome in failed[:3]:
        if isinstance(outcome, ClusterOutcome):
            print(f"\n{outcome.plan}\nthe same with fewer faults:\n{shrink_cluster(outcome)}", flush=True)
    return 1 if failed else 0


def _quorum(simulation: Callable[[int], QuorumOutcome], seed: int) -> QuorumOutcome:
    """Run one seed; a machine that gives up is a violation like any other."""
    try:
        return simulation(seed)
    except (AssertionError, InvariantBroken) as broken:
        return QuorumOutcome(seed, [f"{type(broken).__name__}: {broken}"], Counter())


def _quorum_summary(seeds: int, totals: Counter[str], failed: int, seconds: float) -> str:
    return (
        f"{seeds} quorums, {', '.join(f'{count:,} {name}' for name, count in sorted(totals.items()))}; "
        f"{failed} seeds with violations; {seconds:.0f} s"
    )


def _run_many(seeds: range, jobs: int, only: str | None) -> int:
    began = time.monotonic()
    totals: Counter[str] = Counter()
    traces = hashlib.sha256()
    failed: list[Outcome] = []
    with multiprocessing.Pool(jobs, initializer=_be_quiet) as pool:
        for done, outcome in enumerate(pool.imap(partial(_run_one, only=only), seeds), start=1):
            totals += outcome.counts
            traces.update(outcome.trace_hash.encode())
            if outcome.violations:
                failed.append(outcome)
                print(f"seed {outcome.plan.seed} FAILED: {outcome.violations[0]}", flush=True)
            if done % 100 == 0 or done == len(seeds):
                print(_summary(done, totals, len(failed), time.monotonic() - began), flush=True)
    print(f"trace hash {traces.hexdigest()[:16]}")
    for outcome in failed[:3]:
        _explain(outcome, only)
    return 1 if failed else 0


def _run_one(seed: int, only: str | None) -> Outcome:
    return simulate(_plan_of(seed, only))


def _be_quiet() -> None:
    logging.getLogger("riverlog").setLevel(logging.CRITICAL + 1)


def _summary(seeds: int, totals: Counter[str], failed: int, seconds: float) -> str:
    return (
        f"{seeds} seeds, {totals['crashes']:,} crashes, {totals['kills']:,} kills, {totals['lives']:,} starts, "
        f"{totals['acknowledged']:,} records acknowledged, {totals['shown']:,} read, "
        f"{totals['commits']:,} commits of groups, "
        f"{totals['committed']:,} transactions committed ({totals['shared']:,} of them shared), "
        f"{totals['aborted']:,} aborted, {totals['unknown']:,} in doubt, {totals['fenced']:,} writers fenced, "
        f"{totals['disk_calls']:,} calls to the disk; {failed} seeds with violations; {seconds:.0f} s"
    )


def _replay(seed: int, only: str | None) -> int:
    outcome = simulate(_plan_of(seed, only), keep_trace=True)
    print("\n".join(outcome.trace))
    print(f"trace hash {outcome.trace_hash[:16]}, {dict(outcome.counts)}")
    if outcome.violations:
        _explain(outcome, only)
    return 1 if outcome.violations else 0


def _explain(outcome: Outcome, only: str | None) -> None:
    print(f"\n{outcome.plan}\nviolations:")
    for violation in outcome.violations[:10]:
        print(f"  {violation}")
    again = f"make sim SEED={outcome.plan.seed}" + (f" ONLY={only}" if only else "")
    print(f"the same with fewer steps:\n{shrink(outcome)}\nagain with: {again}", flush=True)


def _show_switches(jobs: int) -> int:
    began, failed = time.monotonic(), 0
    with multiprocessing.Pool(jobs, initializer=_be_quiet) as pool:
        for scenario, wrong in zip(SCENARIOS, pool.imap(_try_scenario, range(len(SCENARIOS))), strict=True):
            failed += bool(wrong)
            print(f"power lost at every call, {scenario.name}: {wrong[0] if wrong else 'all is well'}", flush=True)
        rules = (*SWITCHES, *quorum_switches.SWITCHES, *cluster_switches.SWITCHES)
        names = [switch.name for switch in rules] + [str(place) for place in places()]
        for name, found in zip(names, pool.imap(_try_switch, range(len(names))), strict=True):
            failed += found is None
            print(f"{name}: {found or 'NOT NOTICED'}", flush=True)
    print(
        f"{len(SCENARIOS)} scenarios, {len(names)} rules and waits, {failed} of them not as they should be; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


def _try_scenario(number: int) -> list[str]:
    return wrong_at_crash_points(SCENARIOS[number])


def _try_switch(number: int) -> str | None:
    if number < len(SWITCHES):
        return noticed(SWITCHES[number])
    number -= len(SWITCHES)
    if number < len(quorum_switches.SWITCHES):
        return quorum_switches.noticed(quorum_switches.SWITCHES[number])
    number -= len(quorum_switches.SWITCHES)
    if number < len(cluster_switches.SWITCHES):
        return cluster_switches.noticed(cluster_switches.SWITCHES[number])
    return noticed_without(places()[number - len(cluster_switches.SWITCHES)])


if __name__ == "__main__":
    sys.exit(main())
