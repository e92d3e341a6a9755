"""What was perhaps meant: the nearest of the names that there are."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like this one, if any is."""
    from difflib import get_close_matches

    by_lower_case = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), by_lower_case, n=1)
    return by_lower_case[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a part of a sentence that asks for the nearest known word; nothing where none is near."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""
