"""Reports of a run. All other formats are rendered from the JSON report."""
