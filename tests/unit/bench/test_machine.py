"""CPU time and memory are read from the process table, children included."""

import os

from bench.machine import (
    TICKS_PER_SECOND,
    Process,
    Usage,
    describe,
    parse_process,
    processes,
    resident_bytes,
    tree,
    usage,
)


def test_a_process_name_may_hold_brackets_and_blanks() -> None:
    counters = [user, system, children_user, children_system] = [200, 100, 30, 20]
    stat = f"41 (a) b (c)) S 7 {' '.join('0' * 9)} {' '.join(map(str, counters))} 20 0"
    assert parse_process(stat) == Process(
        pid=41,
        parent=7,
        own_seconds=(user + system) / TICKS_PER_SECOND,
        ended_children_seconds=(children_user + children_system) / TICKS_PER_SECOND,
    )


def test_a_tree_holds_its_roots_and_all_that_descend_from_them_once() -> None:
    table = [Process(pid, parent, 0.0, 0.0) for pid, parent in [(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (9, 8)]]
    assert sorted(process.pid for process in tree(table, [5])) == [5, 6, 7]
    assert sorted(process.pid for process in tree(table, [5, 6, 9])) == [5, 6, 7, 9]
    assert tree(table, [99]) == []


def test_a_difference_is_taken_number_by_number() -> None:
    assert Usage(ours=3.0, others=5.0, stolen=1.0).since(Usage(1.0, 1.5, 0.5)) == Usage(2.0, 3.5, 0.5)


def test_this_process_is_in_the_table_and_has_used_cpu_and_memory() -> None:
    (own,) = (process for process in processes() if process.pid == os.getpid())
    assert own.parent == os.getppid()
    assert 0 < own.own_seconds <= usage([os.getpid()]).ours
    assert resident_bytes(os.getpid()) > 10_000_000


def test_the_machine_is_described() -> None:
    assert f"{os.cpu_count()} cores" in str(describe())
