"""Reports of matched evaluations: one HTML page that stands alone, and the tables behind it as CSV and LaTeX.

`write_report` does everything; its parts are functions on tables: `read_results`, `analyse`, `choose_pair`,
`load_pair` or `rerun_pair`.
"""

from __future__ import annotations

from .analysis import Analysis, analyse
from .pair import PairChoice, PairRun, choose_pair, load_pair, rerun_pair
from .results import Results, read_results
from .write import Report, check_report, write_report

__all__ = [
    "Analysis",
    "PairChoice",
    "PairRun",
    "Report",
    "Results",
    "analyse",
    "check_report",
    "choose_pair",
    "load_pair",
    "read_results",
    "rerun_pair",
    "write_report",
]
