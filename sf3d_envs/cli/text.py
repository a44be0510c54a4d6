"""Text blocks of the help pages."""

from __future__ import annotations


def verbatim(*lines: str) -> str:
    """Lines that the help formatter keeps as they are."""
    return "\b\n" + "\n".join(lines)


def examples(*commands: str) -> str:
    """An epilog that shows commands to copy."""
    return verbatim("Examples:", *(f"  {command}" for command in commands))
