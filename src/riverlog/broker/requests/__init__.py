"""From a frame to its handler and back: dispatch, learnt routes, portions, and the memory for them."""
