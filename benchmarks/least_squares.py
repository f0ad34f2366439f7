"""Bounded robust least squares: Levenberg-Marquardt with the soft-L1 loss, on numpy alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def minimise(
    residuals: Callable[[Vector], Vector], start: Vector, low: Vector, high: Vector, scale: float = 0.05, rounds: int = 60
) -> Vector:
    """Minimise the soft-L1 sum of residuals within bounds.

    The loss of a residual r is 2 s^2 (sqrt(1 + (r / s)^2) - 1): quadratic below s = `scale`, linear above, so that odd rows do not steer the fit.
    """
    x = np.clip(start.astype(float), low, high)
    unit = np.maximum(np.abs(x), 1e-3 * np.maximum(np.abs(high), 1e-9))
    r = residuals(x)
    loss, damping = _loss(r, scale), 1e-2
    for _ in range(rounds):
        jacobian = np.empty((r.size, x.size))
        for column in range(x.size):
            step = 1e-5 * unit[column]
            if x[column] + step > high[column]:
                step = -step
            moved = x.copy()
            moved[column] += step
            jacobian[:, column] = (residuals(moved) - r) / step * unit[column]
        weight = 1.0 / np.sqrt(1.0 + (r / scale) ** 2)
        gradient = jacobian.T @ (weight * r)
        normal = jacobian.T @ (jacobian * weight[:, None])
        free = ~(((x <= low + 1e-12) & (gradient > 0)) | ((x >= high - 1e-12) & (gradient < 0)))
        for _attempt in range(12):
            damped = normal[np.ix_(free, free)] + damping * np.diag(np.diag(normal)[free] + 1e-9)
            move = np.zeros(x.size)
            move[free] = np.linalg.lstsq(damped, -gradient[free], rcond=None)[0] * unit[free]
            trial = np.clip(x + move, low, high)
            r_trial = residuals(trial)
            loss_trial = _loss(r_trial, scale)
            if loss_trial < loss:
                break
            damping *= 4.0
        else:
            return x
        done = loss - loss_trial < 1e-7 * loss
        x, r, loss, damping = trial, r_trial, loss_trial, max(damping / 5.0, 1e-9)
        if done:
            return x
    return x


def _loss(r: Vector, scale: float) -> float:
    return float(np.sum(2.0 * scale**2 * (np.sqrt(1.0 + (r / scale) ** 2) - 1.0)))
