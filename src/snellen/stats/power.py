"""How large a difference so many clusters can show, and how many clusters show a difference."""

from __future__ import annotations

import math

from snellen.stats.distributions import normal_quantile, t_quantile


def detectable_difference(
    deviation: float, n: int, *, power: float = 0.8, level: float = 0.95
) -> float:
    """The smallest true difference that n clusters show with a chance of `power`.

    `deviation` is the standard deviation over clusters of what each adds to the difference. NaN for
    fewer than two clusters.

    >>> round(detectable_difference(0.1, 100), 4)
    0.0283

    Source: Miller 2024, Adding error bars to evals, minimum detectable effect; with Student's t in
    place of the normal quantile.
    """
    if n < 2:
        return math.nan
    reach = t_quantile(level, n - 1.0) + normal_quantile(power)
    return reach * deviation / math.sqrt(n)


def clusters_needed(
    deviation: float, difference: float, *, power: float = 0.8, level: float = 0.95
) -> int | None:
    """How many clusters show a true difference with a chance of `power`; None for no difference.

    >>> clusters_needed(0.1, 0.0283)
    100
    """
    if difference == 0.0 or not math.isfinite(difference) or not math.isfinite(deviation):
        return None
    edge = normal_quantile(0.5 + level / 2.0)
    reach = edge + normal_quantile(power)
    # The last term makes up for the t distribution (Guenther 1981).
    return max(2, math.ceil((reach * deviation / difference) ** 2 + edge**2 / 2.0))


def halfwidth(deviation: float, n: int, *, level: float = 0.95) -> float:
    """Half the width of the interval of a mean over n clusters; NaN for fewer than two.

    >>> round(halfwidth(0.1, 100), 4)
    0.0198
    """
    return t_quantile(level, n - 1.0) * deviation / math.sqrt(n) if n >= 2 else math.nan


def design_effect(trials_a_cluster: float, correlation: float) -> float:
    """By how much clusters make the variance of a rate larger than independent trials would.

    >>> round(design_effect(67, 0.05), 2)
    4.3

    Source: Kish 1965, Survey sampling.
    """
    return 1.0 + (trials_a_cluster - 1.0) * correlation
