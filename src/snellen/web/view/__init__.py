"""The light table: every run, item and probe in the browser, from indexes beside the runs."""
