"""The waterfall as rows of names, durations and places; drawn by the terminal and the page."""
