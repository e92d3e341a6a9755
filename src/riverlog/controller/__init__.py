"""The cluster's metadata on this node: the machine driven over its log, and the log's snapshots."""
