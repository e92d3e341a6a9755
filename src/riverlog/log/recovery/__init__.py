"""Opening a log: what a crash left is found, checked and finished, beside the loop where it is long."""
