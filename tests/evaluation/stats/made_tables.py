"""Vehicle tables from arrays, and simulated studies with known truth."""

from __future__ import annotations

import numpy as np
import polars as pl

LANES = ["closing"] * 5 + ["open"] * 7


def vehicle_table(cells: dict[tuple[str, str], np.ndarray], seeds=None, outcome: str = "collision") -> pl.DataFrame:
    """Rows of cells (agent, condition) -> passages, bool [S, 12], shuffled."""
    frames = []
    for (agent, condition), passed in cells.items():
        worlds, count = passed.shape
        frames.append(
            pl.DataFrame(
                {
                    "agent": agent,
                    "condition": condition,
                    "scenario_seed": np.repeat(np.arange(worlds) if seeds is None else seeds, count).astype(np.uint64),
                    "vehicle": np.tile(np.arange(count), worlds).astype(np.uint8),
                    "lane": LANES[:count] * worlds,
                    "valid_passage": passed.ravel().astype(bool),
                    "outcome": np.where(passed.ravel(), "pass", outcome).tolist(),
                }
            )
        )
    table = pl.concat(frames)
    return table.sample(table.height, shuffle=True, seed=1)


def correlated(rng: np.random.Generator, repeats: int, worlds: int, vehicles: int, rates, spread: float = 1.0):
    """Passages of matched conditions: a world's difficulty is shared by its vehicles and conditions.

    Returns counts [repeats, conditions, worlds] and the true rates of the conditions.
    """
    offsets = np.log(np.asarray(rates) / (1.0 - np.asarray(rates)))
    difficulty = spread * rng.normal(size=(repeats, 1, worlds, 1))
    chance = 1.0 / (1.0 + np.exp(-(offsets[None, :, None, None] + difficulty)))
    uniform = rng.random((repeats, 1, worlds, vehicles))  # common random numbers pair the conditions
    counts = (uniform < chance).sum(axis=-1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    truth = (weights / (1.0 + np.exp(-(offsets[:, None] + spread * nodes)))).sum(axis=1)
    return counts, truth
