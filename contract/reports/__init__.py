"""Reports of a run: JSON is the one that all others are made from."""
