"""Queries of pipelines that run: loaded, started, counted, waited for, and started again when they fail."""
