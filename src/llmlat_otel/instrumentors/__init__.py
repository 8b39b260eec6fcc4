"""The libraries that are timed: one file each, a table of methods and what reads them."""
