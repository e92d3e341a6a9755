"""What the members of groups know: which commits were acknowledged, and which records each group has dealt with.

A group goes on where it last committed, and only the member that has a partition may commit for it. So a commit that
was acknowledged is a floor: nothing that is committed or kept for the partition later lies below it. And whatever
lies below what a group has committed, some member of it was given.
"""

from collections.abc import Callable, Iterable, Mapping

from riverlog.model.ids import TopicPartition

Place = tuple[str, TopicPartition]
"""A group, and a partition that it reads."""


class GroupLedger:
    """The floors of all groups, and what they have dealt with."""

    def __init__(self, blame: Callable[[str], None], *, durable: bool) -> None:
        """Begin a ledger; where nothing is `durable`, a loss of power may take back every commit."""
        self.commits_acknowledged = 0
        self.power_losses = 0
        self._blame = blame
        self._durable = durable
        self._floors: dict[Place, int] = {}
        self._dealt_with: dict[Place, set[int]] = {}

    def given(self, group: str, partition: TopicPartition, offset: int) -> None:
        """Note that a member of the group was given a record."""
        self._dealt_with.setdefault((group, partition), set()).add(offset)

    def acknowledged(self, group: str, offsets: Mapping[TopicPartition, int], *, asked_after: int) -> None:
        """Note that the coordinator promised to keep these; it was asked after so many losses of power.

        The answer may come behind a loss of power that took back what it promises.
        """
        self.commits_acknowledged += 1
        if not self._durable and asked_after < self.power_losses:
            return
        for partition, offset in offsets.items():
            floor = self._floors.get((group, partition), 0)
            if self._durable and offset < floor:
                self._blame(f"group {group} was let commit {offset} for {partition}, where {floor} was committed")
            self._floors[group, partition] = offset

    def power_lost(self) -> None:
        """Forget what was not durable."""
        self.power_losses += 1
        if not self._durable:
            self._floors.clear()

    def floors(self, group: str) -> dict[TopicPartition, int]:
        """Return what is promised to a group now."""
        return {partition: floor for (name, partition), floor in self._floors.items() if name == group}

    def answered(self, group: str, before: Mapping[TopicPartition, int], answer: Mapping[TopicPartition, int]) -> None:
        """Compare what a coordinator says with what was promised when it was asked, as far as that still holds."""
        now = self.floors(group)
        for partition, floor in before.items():
            promised = min(floor, now.get(partition, -1))
            if answer.get(partition, -1) < promised:
                self._blame(
                    f"group {group} has committed {answer.get(partition)} for {partition}, "
                    f"but {promised} was acknowledged"
                )

    def judge(self, group: str, partition: TopicPartition, committed: int, held: Iterable[int]) -> None:
        """Compare what a partition holds with what the group was given of it, up to where it has committed."""
        dealt_with = self._dealt_with.get((group, partition), set())
        skipped = [offset for offset in held if offset < committed and offset not in dealt_with]
        if self._durable and skipped:
            self._blame(f"group {group} has committed {committed} for {partition} and was never given {skipped}")
