"""Runs on many machines: shards that are claimed and united, workers, and batch files."""
