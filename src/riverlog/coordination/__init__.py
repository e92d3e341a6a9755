"""The coordinators of groups and transactions on a node: a machine on each partition of an internal topic."""
