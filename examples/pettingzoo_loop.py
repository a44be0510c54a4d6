"""The PettingZoo loop: agents leave as their vehicles end.

Run: python examples/pettingzoo_loop.py [--steps N | --short]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import pettingzoo

import sf3d_envs


def main(arguments: Sequence[str] | None = None) -> Counter[str]:
    """Run one episode of at most N decisions; returns how often each outcome occurred."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=660)
    parser.add_argument("--short", action="store_true", help="20 decisions only")
    options = parser.parse_args(arguments)

    max_cycles = 20 if options.short else options.steps
    env = pettingzoo.make("parallel", "SF3D/LaneClosure-v0", max_cycles=max_cycles)
    _, infos = env.reset(seed=1)
    for v, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(v)
    outcomes: Counter[str] = Counter()
    while env.agents:
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        _, _, terminations, truncations, infos = env.step(actions)
        for agent, info in infos.items():
            if terminations[agent]:
                outcomes[sf3d_envs.Event(info["event"]).name.lower()] += 1
            elif truncations[agent]:
                outcomes["time is up"] += 1
    print(", ".join(f"{count} {name}" for name, count in outcomes.items()))
    env.close()
    return outcomes


if __name__ == "__main__":
    main()
