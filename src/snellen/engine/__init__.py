"""Drive work: jobs, the scheduler with its pacing, the journal, the cache, and forecasts."""
