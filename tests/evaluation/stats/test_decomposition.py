"""Decomposition and losses by patch: hand-worked, plain version, identities, bad input."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import SEED0, plain_interval, random_table, rows_of, vehicle_table

from sf3d_envs.evaluation.stats import (
    LOSS_CLASSES,
    LOST_TO,
    PARTS,
    BootstrapConfig,
    decomposition,
    losses_by_patch,
    sensitivity,
)

CONFIG = BootstrapConfig(replicates=60, seed=3)


def test_by_hand():
    """Four vehicles: kept, lost to a collision, gained, persistent; then kept, two lost to a reset, persistent."""
    table = pl.concat(
        [
            vehicle_table([["pass", "pass", "fault", "fault"], ["pass", "pass", "pass", "fault"]], closing=1),
            vehicle_table(
                [["pass", "collision", "pass", "off_road"], ["pass", "censored", "censored", "censored"]],
                condition="mu018",
                closing=1,
            ),
        ]
    )
    got = decomposition(table)
    by_part = dict(zip(PARTS, got.counts[0].T.tolist(), strict=True))
    assert by_part == {"kept": [2, 2, 0], "lost": [3, 0, 3], "gained": [1, 0, 1], "persistent": [2, 0, 2]}
    lost = dict(zip(LOST_TO, got.lost_to_counts[0, 0].tolist(), strict=True))
    assert lost == {"collision": 1, "off_road": 0, "incursion": 0, "fault": 0, "censored": 2, "not_crossed": 0}
    assert got.share.estimate[0, 2].tolist() == [0.0, 3 / 6, 1 / 6, 2 / 6]
    frame = got.lost_frame().filter(pl.col("lane") == "open", pl.col("outcome") == "censored")
    assert frame.row(0, named=True)["share"] == 2 / 6


def test_shares_add_up():
    table = random_table(seed=8, worlds=20)
    got, change = decomposition(table), sensitivity(table)
    assert (got.counts.sum(axis=2) == np.array([240, 100, 140])).all()
    assert got.lost_to_counts.sum(axis=2).tolist() == got.counts[..., 1].tolist()
    assert got.share.estimate[..., 2] - got.share.estimate[..., 1] == pytest.approx(change.change.estimate)
    assert got.frame().height == 2 * 3 * 4


def test_equals_the_plain_version():
    table = random_table(seed=11)
    got = decomposition(table, config=CONFIG)
    for c, condition in enumerate(got.conditions):
        then, base = (rows_of(table, condition=x) for x in (condition, "reference"))
        for lane, name in enumerate(got.lanes):
            wanted = {
                **{p: (lambda b, t, p=p: part_of(b, t) == p) for p in PARTS},
                **{o: (lambda b, t, o=o: part_of(b, t) == "lost" and t["outcome"] == o) for o in LOST_TO},
            }
            for i, (label, holds) in enumerate(wanted.items()):

                def share(worlds, holds=holds, name=name, then=then, base=base):
                    keys = [(SEED0 + w, v) for w in worlds for v in range(12)]
                    keys = [k for k in keys if name in ("all", base[k]["lane"])]
                    return sum(holds(base[k], then[k]) for k in keys) / len(keys)

                side, at = (got.share, i) if label in PARTS else (got.lost_to, i - 4)
                values = (side.estimate[c, lane, at], side.low[c, lane, at], side.high[c, lane, at])
                assert values == pytest.approx(plain_interval(share, 6, CONFIG), abs=1e-12), (condition, name, label)


def part_of(base, then):
    if base["valid_passage"]:
        return "kept" if then["valid_passage"] else "lost"
    return "gained" if then["valid_passage"] else "persistent"


def test_contradictions_are_refused():
    table = random_table()
    with pytest.raises(ValueError, match="contradicts valid_passage"):
        decomposition(table.with_columns(valid_passage=pl.lit(True)))
    with pytest.raises(ValueError, match=r"holds \['asleep'\]; allowed are"):
        decomposition(table.with_columns(outcome=pl.lit("asleep")))


def patched(outcome, contact, end):
    table = vehicle_table(outcome, condition="mu018", end_step=end, closing=1)
    return table.with_columns(patch_first_step=pl.Series(np.ravel(contact), dtype=pl.Int32))


def test_losses_before_and_after_the_patch_by_hand():
    outcome = [["collision", "pass", "censored"], ["collision", "collision", "censored"]]
    table = patched(outcome, [[100, 50, -1], [-1, 300, 200]], [[150, 900, 400], [20, 350, 400]])
    got = losses_by_patch(table)
    at = LOSS_CLASSES.index
    assert got.counts[0, 0, at("any")].tolist() == [2, 3]
    assert got.counts[0, 0, at("collision")].tolist() == [1, 2]
    assert got.counts[0, 1, at("collision")].tolist() == [1, 1]
    assert got.counts[0, 2, at("censored")].tolist() == [1, 1]
    assert got.share.estimate[0, 0, at("any")].tolist() == [2 / 6, 3 / 6]
    assert got.of_losses.estimate[0, 0, at("any")].tolist() == [2 / 5, 3 / 5]
    assert np.isnan(got.of_losses.estimate[0, 0, at("fault")]).all()
    assert got.frame().height == 3 * 7 * 2


def test_losses_agree_with_the_plain_version():
    table = random_table(seed=21)
    rng = np.random.default_rng(1)
    first = np.where(rng.random(table.height) < 0.5, 1, -1).astype(np.int32)
    table = table.with_columns(patch_first_step=pl.Series(first))
    got = losses_by_patch(table, config=CONFIG)
    c, k = got.conditions.index("mu018"), LOSS_CLASSES.index("collision")
    rows = rows_of(table, condition="mu018")

    def share_after(worlds):
        hit = [rows[SEED0 + w, v] for w in worlds for v in range(12) if rows[SEED0 + w, v]["outcome"] == "collision"]
        return sum(r["patch_first_step"] >= 0 for r in hit) / len(hit) if hit else None

    side = got.of_losses
    values = (side.estimate[c, 0, k, 1], side.low[c, 0, k, 1], side.high[c, 0, k, 1])
    assert values == pytest.approx(plain_interval(share_after, 6, CONFIG), abs=1e-12)


def test_contact_after_the_event_is_refused():
    with pytest.raises(ValueError, match="1 rows have a patch_first_step after the first_event_step"):
        losses_by_patch(patched([["collision", "pass"]], [[200, -1]], [[100, 900]]))
