"""What scopes and pulls are told, written down."""

from __future__ import annotations


class Log:
    """A pull, and a scope, that write down what they are told."""

    target = "log"

    def __init__(self):
        self.lines = []

    def begin(self):
        self.lines.append("begin")

    def returned(self):
        self.lines.append("returned")

    def received(self, event):
        self.lines.append(event)

    def completed(self):
        self.lines.append("completed")

    def failed(self, error):
        self.lines.append(f"failed by {type(error).__name__}")

    def closed(self, error):
        self.lines.append("closed" if error is None else f"closed by {type(error).__name__}")

    def restart(self):
        self.lines.append("restart")

    def delivered(self, result):
        self.lines.append("delivered")
        return result
