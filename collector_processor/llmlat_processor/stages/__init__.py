"""The four pure steps from spans to an explained trace; they know nothing of each other."""
