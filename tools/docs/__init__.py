"""Generates the reference pages from the schemas and the adapters: `python -m tools.docs`."""
