"""Compaction: which part of a log is cleaned, how, and how the result takes its place."""
