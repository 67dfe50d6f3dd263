"""Figures for papers and for the report, drawn by matplotlib without its global state.

Each public function gives a `matplotlib.figure.Figure` that is saved by `figures.style.save`.
"""
