"""A consumer group in the making: what it will be once the facts of this turn are remembered."""

from riverlog.groups.consumer.group import ConsumerGroup
from riverlog.groups.records import ConsumerGroupKey, ConsumerGroupValue, GroupFact, GroupRecord


class Draft:
    """Collects facts and shows the group as they make it. What is remembered stays untouched."""

    def __init__(self, remembered: ConsumerGroup) -> None:
        self.group = remembered
        self.facts: list[GroupRecord] = []
        self._handed_over = 0

    def write(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Add a fact; None says that nothing holds for the key any more."""
        if not self.facts:
            self.group = self.group.copy()
        self.facts.append(GroupRecord(key, value))
        self.group.apply(key, value)

    def hand_over(self, facts: list[GroupFact]) -> None:
        """Add to the turn's facts what has been written since the last time."""
        facts += self.facts[self._handed_over :]
        self._handed_over = len(self.facts)
