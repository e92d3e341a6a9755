"""Transactions: who may write with a transactional id, and what becomes of what was written. Pure."""
