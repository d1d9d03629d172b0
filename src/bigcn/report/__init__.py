"""Reports of comparisons: tables, plots, and a page for people."""

from bigcn.report.page import write_page
from bigcn.report.plots import save_curves, save_responses
from bigcn.report.tables import comparison_table, markdown_table, text_table, write_csv

__all__ = [
    "comparison_table",
    "markdown_table",
    "save_curves",
    "save_responses",
    "text_table",
    "write_csv",
    "write_page",
]
