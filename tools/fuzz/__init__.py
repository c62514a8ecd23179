"""Generated requests, replies and streams for every client and provider. `python -m tools.fuzz --help` says how."""
