"""Judges as instruments: agreement, errors on known material, audits."""
