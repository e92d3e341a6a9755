"""The partitions that this node holds: their logs opened, led, flushed and closed, and the health of their disks."""
