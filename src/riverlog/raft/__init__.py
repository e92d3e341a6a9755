"""Raft, as Kafka's controllers speak it (KRaft): who leads, what is committed, who votes. A pure machine."""
