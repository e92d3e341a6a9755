"""What a log knows of those who write to it: sequences, transactions, and snapshots of both."""
