"""The tensor state inside an environment: how much grip a driver leaves unused, and how hard the crashes are.

IDM drives worlds of five road conditions. Tyre forces, loads and friction of every wheel come from the same
``sim.state`` that a loop without an environment reads, as does a contact sensor; a reward function uses them too.

Run: python examples/tire_reserve.py [--seconds S | --short] [--worlds N] [--out tire_reserve.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

import sf3d_envs
from sf3d_envs.agents import make_agent

CONDITIONS = ("reference", "mu035", "mu018", "mu008", "gradeN080")


def grip_used(state: sf3d_envs.SimState) -> torch.Tensor:
    """Largest share of its friction circle that any wheel of a vehicle uses, [W, V]."""
    limit = state.wheel_load * state.wheel_friction
    return (state.tire_force.norm(dim=-1) / limit.clamp(min=1.0)).clamp(max=1.0).amax(dim=-1)


def gentle(view, terms) -> torch.Tensor:
    """A reward of one's own: progress, less what the tyres are pushed beyond half of their grip."""
    return terms["progress"] - 0.1 * (grip_used(view.state) - 0.5).clamp(min=0.0)


def run(worlds: int, seconds: float) -> dict[str, np.ndarray]:
    """By condition: grip used [conditions, samples], hardest hit of each vehicle [m/s], mean reward."""
    agent = make_agent("idm17")
    env = sf3d_envs.TorchEnv(
        worlds * len(CONDITIONS),
        condition=[name for name in CONDITIONS for _ in range(worlds)],
        control="all",
        rules="scoring",
        decision_hz=agent.decision_hz,
        autoreset_mode="Disabled",
        reward_fn=gentle,
        state=sf3d_envs.StateConfig(contacts=True),
    )
    env.reset(options={"scenario_seed": [100_000 + k for _ in CONDITIONS for k in range(worlds)]})
    agent.bind(env.view)
    sensor = env.sim.state.contact_sensor()
    mass = env.sim.vehicles[0].mass
    shape = (len(CONDITIONS), worlds, 12)
    used, reward, change = [], torch.zeros(shape), torch.zeros(shape)
    for _ in range(round(60 * seconds)):
        _, earned, *_ = env.step(agent.act(env.view))
        used.append(grip_used(env.sim.state).reshape(shape).clone())
        reward += earned.reshape(shape)
        hit = sensor.impulse_from("vehicle").norm(dim=-1) / mass
        change = torch.maximum(change, hit.reshape(shape))
    env.close()
    return {
        "used": torch.stack(used, dim=1).reshape(len(CONDITIONS), -1).numpy(),
        "crash": change.reshape(len(CONDITIONS), -1).numpy(),
        "reward": reward.mean(dim=(1, 2)).numpy(),
    }


def draw(results: dict[str, np.ndarray], path: str) -> None:
    """Distribution of grip used, and of the change of speed in a control step of contact."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    grip, crash = figure.subplots(1, 2)
    colours = ("#222222", "#1f5fa8", "#2c8c6a", "#c8452d", "#e08a1e")
    for k, (name, colour) in enumerate(zip(CONDITIONS, colours, strict=True)):
        used = np.sort(results["used"][k])[:: max(1, len(results["used"][k]) // 2000)]
        grip.plot(used, 1.0 - np.linspace(0.0, 1.0, len(used)), color=colour, label=name)
        hits = np.sort(results["crash"][k][results["crash"][k] > 0.05])[::-1]
        crash.plot(hits, np.arange(1, len(hits) + 1), color=colour, marker="o", ms=3, lw=1.0, label=name)
    grip.set(xlabel="share of the friction circle used", ylabel="share of driving time above it", yscale="log")
    grip.set_ylim(1e-3, 1.2)
    crash.set(xlabel="hardest hit: change of speed in 1/60 s [m/s]", ylabel="vehicles hit at least so hard")
    for axes in (grip, crash):
        axes.spines[["top", "right"]].set_visible(False)
    grip.legend(frameon=False)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Drive, print and draw; returns the mean share of grip used by condition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=8, help="worlds per condition")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--short", action="store_true", help="one world per condition, half a second")
    parser.add_argument("--out", default="tire_reserve.png")
    options = parser.parse_args(arguments)

    if options.short:
        print("a short run: the figures below say nothing yet")
    worlds, seconds = (1, 0.5) if options.short else (options.worlds, options.seconds)
    results = run(worlds, seconds)
    for k, name in enumerate(CONDITIONS):
        used, hits = results["used"][k], results["crash"][k] > 0.05
        print(
            f"{name:10s} grip used {used.mean():.2f} on average, at the limit {np.mean(used > 0.98):6.2%} of the time, "
            f"{hits.sum():2d} vehicles hit, at most {results['crash'][k].max():4.1f} m/s in a step, "
            f"reward {results['reward'][k]:.1f}"
        )
    draw(results, options.out)
    print(f"picture in {options.out}")
    return dict(zip(CONDITIONS, results["used"].mean(axis=1).tolist(), strict=True))


if __name__ == "__main__":
    main()
