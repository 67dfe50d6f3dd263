"""Building benchmarks: flows that ask models, and the pure rules of each stage."""
