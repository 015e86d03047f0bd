"""Reports: the table to read at the end of a run, and the JSON that another program reads."""

from __future__ import annotations

from .json_report import report_to_json as report_to_json
from .matrix_table import print_matrix as print_matrix
from .render import print_report as print_report
