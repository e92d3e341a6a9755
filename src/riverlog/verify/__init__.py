"""Whether a cluster keeps its promises: what clients did and saw, the anomalies in it, and a load to find them with."""
