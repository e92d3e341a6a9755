"""Spark's checkpoint store over a compacted topic: files by WebHDFS, and one decision per batch of a pipeline.

`files.tree` is what is kept, rebuilt from the topic's records; `files.changes` decides what a request writes; `store`
writes it, in transactions that fence every other store; `files.webhdfs` speaks with Spark, served by `server`.
"""
