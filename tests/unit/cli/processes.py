"""Real draftd processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60  # that any of them may take

# Python itself, so that no other draftd on the path is run; the environment without options of this machine.
COMMAND = (sys.executable, "-m", "draftd")


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("DRAFTD_")} | dict(extra)


def draftd(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env=environment(variables),
    )


def only_line(finished: subprocess.CompletedProcess[str]) -> str:
    """The error of a command that failed: one line, nothing else."""
    assert finished.returncode != 0
    (line,) = finished.stderr.splitlines()
    return line


@dataclass(frozen=True, slots=True)
class Served:
    """A server that said it is ready."""

    process: subprocess.Popen[str]
    ready_line: str
    endpoints: dict[str, str]  # by kind

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit status and log."""
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, log


@contextmanager
def serving(data_dir: Path, *arguments: str | Path, **variables: str) -> Iterator[Served]:
    """`draftd serve` on a free HTTP port."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--data-dir", str(data_dir), "--http", "127.0.0.1:0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(variables),
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate(timeout=SECONDS)[1]
            words = line.partition("ready: ")[2].split()
            yield Served(process, line, dict(zip(words[::2], words[1::2], strict=True)))
        finally:
            process.kill()
