"""The names, edges and units of the latency contract."""
