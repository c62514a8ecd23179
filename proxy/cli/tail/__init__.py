"""The command `tail`: log lines of a file, of a pipe or of a running proxy, in the short form for people."""

__all__: list[str] = []
