"""What drives a run: the scheduler with its pacing, meters and stops."""
