"""Raft machines alone, on a heap of events: no loop, no sockets, thousands of crashes a minute."""
