"""Checks of the simulator against references, as functions that return what they found."""
