"""From failures of models to atomic questions about what is seen."""
