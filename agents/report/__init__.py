"""Reports of evaluations: JSON that says all, CSV, a table for the eye, a picture, and a page for a browser."""

from agents.report.document import (
    CSV_NAME,
    FILE_NAME,
    PAGE_NAME,
    PLOT_NAME,
    Report,
    csv_of,
    same_figures,
    versions,
)
from agents.report.figures import fair, headline
from agents.report.page import page_of
from agents.report.picture import plot
from agents.report.terminal import table

__all__ = [
    "CSV_NAME",
    "FILE_NAME",
    "PAGE_NAME",
    "PLOT_NAME",
    "Report",
    "csv_of",
    "fair",
    "headline",
    "page_of",
    "plot",
    "same_figures",
    "table",
    "versions",
]
