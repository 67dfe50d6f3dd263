"""What is done with finished runs: comparison, agreement, judge checks, studies."""
