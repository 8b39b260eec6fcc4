"""Where timelines come from: records read from text, and a population made for a demonstration."""
