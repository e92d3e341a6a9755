"""What a node does by itself from time to time: retention, compaction, checkpoints, and a look at what lies on disk."""
