"""What a node shows of itself: counts kept as plain integers, log lines, and the door they are read through."""
