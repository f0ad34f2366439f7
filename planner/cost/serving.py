"""Waiting: what a request spends in queues before its prompt is taken up, in a closed loop and at an offered rate.

Closed loop (a concurrency): each of B clients sends its next request when the last has ended. Requests meet at the prefill, and they meet in crowds: all start together,
and those that started together end together. Between prompts spread evenly (hardly any wait) and all at once (B / 2 prompts ahead) published runs
lie at queue x (B - 1)^crowding prompts, about 0.5 sqrt(B). Little's law then gives how many of the B sequences decode: B out TPOT / (TTFT + out TPOT).

Offered rate: requests come at random (Poisson) at rate lambda and take one of r slots (the sequences the KV cache and the engine hold). The wait
is that of the M/G/r queue in Sakasegawa's approximation (1977),

    W = (1 + c^2) / 2 x rho^(sqrt(2 (r + 1)) - 1) / (r (1 - rho)) x E[service],   rho = lambda E[service] / r,

infinite from rho = 1 on, with c the coefficient of variation of the service time (1 for exponential lengths, 0 for equal ones).
"""

from __future__ import annotations

import numpy as np

from planner.cost.setting import FloatArray

WAITED_PASSES = 2.0
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


def crowd(batch: FloatArray, queue: float, crowding: float) -> FloatArray:
    """Prompts that came before one and are still to be taken up, queue (B - 1)^crowding in a closed loop of B = `batch` sequences; constants of the engine."""
    return np.asarray(queue * np.maximum(batch - 1.0, 0.0) ** crowding, dtype=np.float64)


def prefill_wait_seconds(batch: FloatArray, pass_seconds: FloatArray, prompt_seconds: FloatArray, before: FloatArray) -> FloatArray:
    """Mean wait of a prompt in a closed loop of `batch` sequences [s], shape [n].

    Two running passes (the one under way, and the one whose answer is still on its way out), and the prompts that came before it (`crowd`).

    Parameters
    ----------
    batch
        Sequences of the loop; one alone never waits for another.
    pass_seconds, prompt_seconds
        Time of the average pass, and of taking up one prompt [s].
    before
        Prompts before it.
    """
    return np.minimum(np.maximum(batch - 1.0, 0.0), 1.0) * WAITED_PASSES * pass_seconds + before * prompt_seconds


def effective_batch(concurrency: FloatArray, most_sequences: FloatArray) -> FloatArray:
    """Sequences that run at once: those offered, as far as the KV cache holds them; the others wait for a slot."""
    return np.minimum(np.asarray(concurrency, dtype=np.float64), most_sequences)


def slot_wait_seconds(concurrency: FloatArray, batch: FloatArray, service_seconds: FloatArray) -> FloatArray:
    """Wait for a slot in a closed loop that offers more than `batch` sequences [s]: (N - B) / B service times, by Little's law."""
    return np.maximum(np.asarray(concurrency, dtype=np.float64) - batch, 0.0) / np.maximum(batch, 1.0) * service_seconds
