"""Runs from request to summary: specification, folder, driving, judging again."""
