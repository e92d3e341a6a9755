"""Pipelines: windows, joins and late data over Spark's DataFrames, a thin layer in which everything stays reachable."""
