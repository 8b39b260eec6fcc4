"""The only I/O: what comes in from the network and goes out to it."""
