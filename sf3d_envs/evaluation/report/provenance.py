"""Where the figures of a report come from, and what they do not say."""

from __future__ import annotations

from collections.abc import Sequence

from ... import __version__
from ..errors import error_lines
from ..identity import code_digest
from ..store import file_digest
from .results import Results

FEW_WORLDS = 32


def provenance(results: Results) -> list[tuple[str, str]]:
    """Facts about the evaluation, (name, value), from its manifests."""
    identity, record = results.identity, results.manifest["record"]
    seeds = f"{identity['seed0']} ... {identity['seed0'] + identity['worlds'] - 1}"
    boot = results.bootstrap
    first = results.cells[0].manifest["record"]
    facts = [
        ("suite", f"{identity['suite']}, digest {_short(identity['suite_digest'])}"),
        ("worlds per cell", f"{identity['worlds']}, scenario seeds {seeds}"),
        ("recorded at 60 Hz", f"{identity['rich']} worlds per cell" if identity["rich"] else "none"),
        ("rules", f"{identity['rules']}, horizon {identity['horizon_s']:g} s"),
        ("timing", f"{identity['control_hz']} Hz control, {identity['substeps']} substeps"),
        ("solver, device", f"{identity['solver']}, {identity['device']}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in identity["packages"].items())),
        ("code", _short(identity["code"]) + _other_code(identity["code"])),
        ("metric schema", _short(identity["metrics"])),
        ("route digest", _short(first["route"])),
        ("freeze manifest", _short(record["frozen"]) if record.get("frozen") else "none"),
        ("manifest.json", _short(file_digest(results.folder / "manifest.json"))),
        (
            "intervals",
            f"{100 * boot.level:g} % percentile bootstrap over worlds, {boot.replicates:,} replicates, "
            f"seed {boot.seed}",
        ),
        ("report by", f"sf3d-envs {__version__}, code {_short(code_digest())}"),
    ]
    for name in results.agents:
        cell = results.cell(name, results.slugs[0]).manifest["identity"]["cell"]
        checkpoint = f", checkpoint {_short(cell['checkpoint_digest'])}" if cell.get("checkpoint_digest") else ""
        facts.append((f"agent {name}", f"{cell['decision_hz']} Hz, digest {_short(cell['agent_digest'])}{checkpoint}"))
    return facts


def _short(digest: str) -> str:
    return digest[:16]


def _other_code(digest: str) -> str:
    return "" if digest == code_digest() else " (not that of the installed version)"


def limits(results: Results) -> list[str]:
    """What a reader should not conclude."""
    identity = results.identity
    said = [
        "The simulator is checked against closed forms and an independent model, and is not calibrated against a real "
        "car: the figures are evidence about controllers in this simulator, not about the safety of a road.",
        "Intervals resample the worlds of one scenario distribution. They are pointwise and not adjusted for how many "
        "are looked at, and say nothing about retraining an agent.",
        "Safety measures cover valid driving alone; where vehicles fail early there is less of it. Differences in them "
        "between conditions include which vehicles are still driving.",
        "A fault resets its whole world; the other vehicles that had not crossed are censored and count as no passage.",
        "Hazard ratios are associations in time, not effects.",
    ]
    if identity["worlds"] < FEW_WORLDS:
        said.insert(0, f"{identity['worlds']} worlds are few: percentile intervals over them are too narrow.")
    variant = [n for n, same in results.manifest["record"].get("row_invariant", {}).items() if not same]
    if variant:
        said.append(
            f"Actions of {', '.join(variant)} depend in their last bits on the batch; single worlds may differ in "
            "another one."
        )
    errors = results.manifest["record"].get("errors") or {}
    said += [f"Errors in the runs: {line}" for line in error_lines(errors, identity["worlds"])]
    return said


def terrain_digests(results: Results) -> Sequence[tuple[str, str]]:
    """Digest of every condition's road."""
    agent = results.agents[0]
    return [(slug, _short(results.cell(agent, slug).manifest["record"]["terrain"])) for slug in results.slugs]
