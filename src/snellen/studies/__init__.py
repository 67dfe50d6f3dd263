"""Studies of finished runs beyond their metrics."""
