"""Intervals, paired tests, agreement, corrections and the simulator that checks them."""
