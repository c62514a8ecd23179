"""Where `dragoman serve` reads its configuration, at the start and again while the proxy runs.

It is read again in a process that ends then: pydantic and the YAML library would take a third of the memory of a proxy.
A proxy has threads, so that it cannot fork: the process is a new one, which this module runs in.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dragoman.proxy.config.problems import ConfigErrors, Problem

if TYPE_CHECKING:
    from dragoman.proxy.config.checked_config import CheckedConfig
    from dragoman.proxy.config.models import Config

__all__ = ["ConfigurationSource", "Report"]

LONGEST_READ = 60.0
"""Seconds that a process may take to read the configuration."""
COMMAND = (sys.executable, "-P", "-m", "dragoman.proxy.cli.configuration_source")

Report: TypeAlias = Callable[[Sequence[Problem]], None]
"""Tells whoever needs to know about problems that are no errors."""


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """The options of the command line that decide the configuration."""

    file: Path | None
    env_file: Path | None
    insecure: bool
    host: str | None
    port: int | None

    def read(self, report: Report) -> CheckedConfig:
        """Read the configuration in this process. Raises ConfigErrors."""
        from dragoman.proxy.config.envfile import FILE as ENV_FILE

        from .options import DEFAULT_FILE, load_configuration, read_environment

        environment = read_environment(self.env_file, self.file, report=report)
        checked = load_configuration(self.file, environment, self.insecure)
        files = (*checked.files, self.env_file or (self.file or DEFAULT_FILE).parent / ENV_FILE)
        return replace(checked, config=self._override_address(checked.config), files=files)

    def read_again(self) -> CheckedConfig:
        """Read the configuration in another process. What would be printed at the start is among the warnings. Raises
        ConfigErrors, also if that takes too long or the process is ended."""
        try:
            ended = subprocess.run(
                COMMAND, input=pickle.dumps(self), capture_output=True, start_new_session=True, timeout=LONGEST_READ
            )
        except subprocess.TimeoutExpired:
            text = f"reading it took more than {LONGEST_READ:g} s: one of the files, or its disk, does not answer"
            raise ConfigErrors([self._describe_failure(text)]) from None
        if ended.returncode < 0:
            text = f"signal {-ended.returncode} ended the process that reads it; it takes about 50 MB of memory"
            raise ConfigErrors([self._describe_failure(text)])
        if ended.returncode:
            raise RuntimeError(f"the configuration could not be read: {ended.stderr.decode(errors='replace')[-2000:]}")
        checked, problems, files = pickle.loads(ended.stdout)
        if checked is None:
            raise ConfigErrors(problems, files)
        read: CheckedConfig = checked
        return replace(read, warnings=(*problems, *read.warnings))

    def _describe_failure(self, text: str) -> Problem:
        return Problem(str(self.file), 0, 0, "unreadable", "", text)

    def _override_address(self, config: Config) -> Config:
        """The configuration with the host and port of the command line, if they are given."""
        chosen: dict[str, Any] = {"host": self.host, "port": self.port}
        given = {name: value for name, value in chosen.items() if value is not None}
        return replace(config, server=replace(config.server, **given))


def main() -> None:
    """Read the configuration that standard input names. Write it to standard output, or None, the problems, and the
    files that a configuration with errors names."""
    source = pickle.load(sys.stdin.buffer)
    problems: list[Problem] = []
    files: Sequence[Path] = ()
    try:
        checked = source.read(problems.extend)
    except ConfigErrors as errors:
        checked = None
        problems += errors.problems
        files = errors.files
    pickle.dump((checked, problems, files), sys.stdout.buffer)


if __name__ == "__main__":
    main()
