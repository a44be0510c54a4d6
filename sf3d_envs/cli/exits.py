"""Exit codes and one-line errors of the command line, in one place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

OK, CHECK_FAILED, BAD_INPUT, NO_RESOURCE, INTERRUPTED = 0, 1, 2, 3, 130

_UsageError: Any = typer.BadParameter.__mro__[1]


class InputError(ValueError):
    """Input of a command that cannot be worked with; the message names the argument, its value and what is allowed."""


class CheckFailedError(RuntimeError):
    """A check that a command makes did not hold."""


@contextmanager
def checked_input() -> Iterator[None]:
    """Turn the ValueErrors and TypeErrors of a command's validation into `InputError`."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error


def at_least(argument: str, value: float | None, least: float) -> None:
    """Refuse a number below `least`; None passes.

    Raises:
        InputError: Naming argument, value and bound.
    """
    if value is not None and not value >= least:
        raise InputError(f"{argument} is {value}; it must be >= {least}")


def tier_alone(tier: str | None, worlds: int | None, seed0: int | None) -> None:
    """Refuse `--tier` beside what it sets.

    Raises:
        InputError: If `--worlds` or `--seed0` is given too.
    """
    if tier is not None and (worlds is not None or seed0 is not None):
        raise InputError(f"--tier is {tier!r}; it sets worlds and seeds, leave out --worlds and --seed0")


def split_names(argument: str, text: str) -> list[str]:
    """Names of a comma-separated option.

    Raises:
        InputError: If a name is empty or appears twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise InputError(f"{argument} is {text!r}; give different names separated by commas")
    return names


def fail(prefix: str, error: BaseException | str) -> None:
    """Print an error on one line of stderr."""
    message = " ".join(str(error).split()) or type(error).__name__
    print(f"{prefix}: error: {message}", file=sys.stderr)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()


class ExitGroup(TyperGroup):
    """A command group that ends the process with the exit codes of this module."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:
        """Parse, run and exit; an unforeseen exception keeps its traceback."""
        words = list(sys.argv[1:] if args is None else args)
        name = " ".join(["sf3d", *(w for w in words[:1] if w in self.commands)])
        extra.pop("standalone_mode", None)
        try:
            code = super().main(args=words, prog_name=prog_name or "sf3d", standalone_mode=False, **extra)
        except _UsageError as error:
            fail(name, f"{error.format_message()} (see {name} --help)")
            code = BAD_INPUT
        except InputError as error:
            fail(name, error)
            code = BAD_INPUT
        except CheckFailedError as error:
            fail(name, error)
            code = CHECK_FAILED
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except BrokenPipeError:
            raise
        except (OSError, ImportError) as error:
            fail(name, error)
            code = NO_RESOURCE
        except (MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            fail(name, f"{str(error) or 'out of memory'}; use fewer worlds")
            code = NO_RESOURCE
        if code == INTERRUPTED:
            fail(name, "interrupted")
        sys.exit(code if isinstance(code, int) else OK)
