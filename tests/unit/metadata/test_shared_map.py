"""Maps that never change."""

import pytest

from riverlog.metadata.shared_map import SharedMap


def filled(count: int) -> SharedMap[int]:
    numbers: SharedMap[int] = SharedMap()
    for number in range(count):
        numbers = numbers.with_entry(f"key-{number}", number)
    return numbers


def test_it_holds_what_was_put_in():
    numbers = filled(5_000)
    assert len(numbers) == 5_000
    assert numbers.get("key-4321") == 4321
    assert "key-0" in numbers
    assert "other" not in numbers
    assert numbers.get("other") is None


def test_a_map_does_not_change_under_its_holder():
    before = filled(10)
    after = before.with_entry("key-3", 33).without("key-4")
    assert (before.get("key-3"), before.get("key-4"), len(before)) == (3, 4, 10)
    assert (after.get("key-3"), after.get("key-4"), len(after)) == (33, None, 9)


def test_what_did_not_change_is_shared():
    before = filled(3_000)
    after = before.with_entry("key-1", 7)
    pairs = [
        (ours, theirs)
        for branch, other in zip(before._branches, after._branches, strict=True)
        for ours, theirs in zip(branch, other, strict=True)
    ]
    assert sum(ours is not theirs for ours, theirs in pairs) == 1


def test_taking_away_what_is_not_there_is_nothing():
    numbers = filled(3)
    assert numbers.without("other") is numbers


def test_items_come_in_the_order_of_their_keys_and_equality_does_not_depend_on_history():
    numbers: SharedMap[int] = SharedMap()
    for key in ("b", "a", "c", "d"):
        numbers = numbers.with_entry(key, ord(key))
    numbers = numbers.without("d")
    assert list(numbers.items()) == [("a", 97), ("b", 98), ("c", 99)]
    assert numbers == SharedMap[int]().with_entry("a", 97).with_entry("c", 99).with_entry("b", 98)
    assert numbers != numbers.with_entry("a", 1)
    assert repr(numbers) == "SharedMap({'a': 97, 'b': 98, 'c': 99})"


def test_it_is_no_key():
    with pytest.raises(TypeError):
        hash(SharedMap())
