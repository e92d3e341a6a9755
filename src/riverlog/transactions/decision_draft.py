"""A decision of the machine in the making: when it is made, and what it holds so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from riverlog.model.ids import ProducerId
from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket
from riverlog.model.transactions import TransactionOutcome, TransactionVersion
from riverlog.transactions.commands import Effect, SendMarkers
from riverlog.transactions.members import SharedMember, SharedMemberState
from riverlog.transactions.records import MemberFact, MemberName, StateFact, TransactionFact
from riverlog.transactions.states import Transaction


@dataclass(slots=True)
class DecisionDraft:
    """Facts, replies and effects so far; whoever takes part in the decision adds to them."""

    now: Moment
    remembered: Mapping[str, Transaction]
    pools: Mapping[str, Mapping[ProducerId, SharedMember]] = field(default_factory=dict)
    """The members of transactional ids."""
    facts: list[StateFact] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    drafts: dict[str, Transaction | None] = field(default_factory=dict)
    """What the facts so far make of transactional ids."""
    pool_drafts: dict[str, dict[ProducerId, SharedMember]] = field(default_factory=dict)
    """And of their members."""

    def find(self, transactional_id: str) -> Transaction | None:
        """Return what holds for an id, as the facts so far make it."""
        if transactional_id in self.drafts:
            return self.drafts[transactional_id]
        return self.remembered.get(transactional_id)

    def write(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Add a fact, and send out the markers where it ends a transaction."""
        self.facts.append(TransactionFact(transactional_id, transaction))
        self.drafts[transactional_id] = transaction
        if transaction is not None and transaction.state.is_ending:
            self.send_markers(transactional_id, transaction)

    def send_markers(self, transactional_id: str, transaction: Transaction) -> None:
        """Ask for the markers that end the transaction."""
        if transaction.shared is not None and not transaction.partitions:
            return  # its members have their own
        self.effects.append(
            SendMarkers(
                transactional_id,
                transaction.producer,
                transaction.is_committed,
                tuple(sorted(transaction.partitions)),
                transaction.version,
            )
        )

    def count(self, outcome: TransactionOutcome) -> None:
        """Count the end of a transaction."""
        self.effects.append(outcome)

    def members(self, transactional_id: str) -> list[SharedMember]:
        """Return the pool of an id, as the facts so far make it."""
        return list(self._pool(transactional_id).values())

    def find_member(self, name: MemberName) -> SharedMember | None:
        return self._pool(name.transactional_id).get(name.producer_id)

    def write_member(self, name: MemberName, member: SharedMember | None) -> None:
        """Add a fact about a member, and send out the markers where it ends."""
        self.facts.append(MemberFact(name, member))
        drafts = self.pool_drafts.get(name.transactional_id)
        if drafts is None:
            drafts = self.pool_drafts[name.transactional_id] = dict(self.pools.get(name.transactional_id, {}))
        if member is None:
            drafts.pop(name.producer_id, None)
            return
        drafts[name.producer_id] = member
        if member.state.is_ending:
            self.send_markers_of(name.transactional_id, member)

    def send_markers_of(self, transactional_id: str, member: SharedMember) -> None:
        """Ask for the markers that end a member's part."""
        self.effects.append(
            SendMarkers(
                transactional_id,
                member.producer,
                member.state is SharedMemberState.COMMITTING,
                tuple(sorted(member.partitions)),
                TransactionVersion.EPOCH_PER_TRANSACTION,
            )
        )

    def _pool(self, transactional_id: str) -> Mapping[ProducerId, SharedMember]:
        drafts = self.pool_drafts.get(transactional_id)
        return self.pools.get(transactional_id, {}) if drafts is None else drafts

    def answer(self, ticket: Ticket, response: object) -> None:
        """Answer the caller, or one who has waited since an earlier decision."""
        self.replies.append(Reply(ticket, response))

    def in_ms(self, delay_ms: int) -> Instant:
        """Return the instant so many milliseconds from now."""
        return Instant(self.now.instant + delay_ms / 1000)

    def decision(self) -> Decision[StateFact, Effect]:
        return Decision(records=tuple(self.facts), replies=tuple(self.replies), effects=tuple(self.effects))
