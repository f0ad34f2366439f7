"""Waiting: what a request spends in queues before its prompt is taken up, in a closed loop and at an offered rate.

Closed loop (a concurrency): one client sends the next request when the last has ended. Requests meet only at the prefill: with a share f of
the passes carrying prompts, a new prompt waits for half a running pass and, as in an M/D/1 queue, for f / (2 (1 - f)) passes of prompts ahead, at most
half of the others'. Little's law then gives how many of the B sequences decode: B out TPOT / (TTFT + out TPOT).

Offered rate: requests come at random (Poisson) at rate lambda and take one of r slots (the sequences the KV cache and the engine hold). The wait
is that of the M/G/r queue in Sakasegawa's approximation (1977),

    W = (1 + c^2) / 2 x rho^(sqrt(2 (r + 1)) - 1) / (r (1 - rho)) x E[service],   rho = lambda E[service] / r,

infinite from rho = 1 on, with c the coefficient of variation of the service time (1 for exponential lengths, 0 for equal ones).
"""

from __future__ import annotations

import numpy as np

from planner.cost.setting import FloatArray

SERVICE_VARIATION = 0.5  # coefficient of variation of a request's time in its slot; lengths in production spread about that much


def queueing_seconds(request_rate: FloatArray | float, slots: FloatArray, service_seconds: FloatArray) -> FloatArray:
    """Mean wait for a slot at an offered rate [s], shape [n]; 0 in a closed loop (rate 0), infinite when overloaded.

    Parameters
    ----------
    request_rate
        Requests offered to one replica [1/s].
    slots
        Sequences held at once, r.
    service_seconds
        Time a request holds its slot: TTFT without the wait, plus out x TPOT [s].
    """
    slots = np.maximum(np.asarray(slots, dtype=np.float64), 1.0)
    busy = np.asarray(request_rate, dtype=np.float64) * service_seconds / slots
    exponent = np.sqrt(2.0 * (slots + 1.0)) - 1.0
    below = np.minimum(busy, 1.0 - 1e-12)
    wait = (1.0 + SERVICE_VARIATION**2) / 2.0 * below**exponent / (slots * (1.0 - below)) * service_seconds
    return np.where(busy >= 1.0, np.inf, np.where(busy > 0.0, wait, 0.0))


def prefill_wait_seconds(share: FloatArray, batch: FloatArray, pass_seconds: FloatArray, prompt_pass_seconds: FloatArray) -> FloatArray:
    """Mean wait of a prompt for the passes before it in a closed loop [s], shape [n].

    Parameters
    ----------
    share
        Share f of the passes that carry prompts.
    batch
        Sequences of the loop; one alone never waits.
    pass_seconds, prompt_pass_seconds
        Time of the average pass and of one that carries a chunk [s].
    """
    others = np.maximum(batch - 1.0, 0.0)
    ahead = np.minimum(share / (2.0 * np.maximum(1.0 - share, 1e-9)), 0.5 * others)
    return np.minimum(others, 1.0) * 0.5 * pass_seconds + ahead * prompt_pass_seconds


def effective_batch(concurrency: FloatArray, most_sequences: FloatArray) -> FloatArray:
    """Sequences that run at once: those offered, as far as the KV cache holds them; the others wait for a slot."""
    return np.minimum(np.asarray(concurrency, dtype=np.float64), most_sequences)


def slot_wait_seconds(concurrency: FloatArray, batch: FloatArray, service_seconds: FloatArray) -> FloatArray:
    """Wait for a slot in a closed loop that offers more than `batch` sequences [s]: (N - B) / B service times, by Little's law."""
    return np.maximum(np.asarray(concurrency, dtype=np.float64) - batch, 0.0) / np.maximum(batch, 1.0) * service_seconds
