"""Sockets, connections, one handler per API: the road of a request."""
