"""Drives the stages of a builder: files, calls, resume, funnel, review and export."""
