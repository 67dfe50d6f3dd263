"""One HTML page about runs, and the tables that stand on it."""
