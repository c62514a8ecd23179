"""The JSON report."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.contract.reports.json_report import InvalidReportError, read_report


def test_file_of_another_form_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"report": 1}', "utf-8")
    with pytest.raises(InvalidReportError, match="required property"):
        read_report(file)
