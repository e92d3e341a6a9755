"""Clients in other languages, each behind a small program of ours that takes calls as JSON lines.

`make conformance` names the files `check_*.py` here; `make test` does not collect them, for it needs neither Node, Java
nor Go. What the programs need is fetched into the cache, never into the tree.
"""
