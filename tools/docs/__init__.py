"""Reference pages, made from the schemas and from what the adapters do: `python -m tools.docs`."""
