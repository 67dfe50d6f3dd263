"""Scores for training: a reply in, a number out, judged as in an evaluation."""

from __future__ import annotations

from snellen.rewards.scorer import Score, Scorer

__all__ = ["Score", "Scorer"]
