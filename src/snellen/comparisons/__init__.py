"""Runs on the same items, compared in pairs."""
