"""Spark's checkpoint store over a compacted topic: files by WebHDFS, and one decision per batch of a pipeline.

`tree` is what is kept, rebuilt from the topic's records; `changes` decides what a request writes; `store` writes it,
in transactions that fence every other store; `edge` speaks WebHDFS, served by `server`.
"""
