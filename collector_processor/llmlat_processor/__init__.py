"""Joins spans into traces and explains where their time went."""
