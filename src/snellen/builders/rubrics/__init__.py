"""Rubrics from golden captions and from the errors of a pool of models: flows and pure rules."""
