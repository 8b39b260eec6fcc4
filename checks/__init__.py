"""The rules that this repository holds itself to, one file a rule."""
