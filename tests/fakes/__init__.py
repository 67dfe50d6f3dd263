"""Fake endpoints for tests and benchmarks."""
