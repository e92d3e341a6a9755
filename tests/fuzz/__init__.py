"""Hostile bytes: for the codec and the records in this process, for a real node through its socket."""
