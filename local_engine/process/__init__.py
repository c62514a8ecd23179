"""The engine process: a native crash ends only this process. Entry point: `python -m dragoman.local_engine.serve`."""

__all__: list[str] = []
