"""A node and its clients on virtual time, with a disk that forgets: every run is determined by its seed."""
