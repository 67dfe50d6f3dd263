"""The stages of the rubrics pipeline."""
