"""`draftd demo` as people run it: to its end, interrupted, and with its server killed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from draftd.demo.sample import trace_files
from draftd.replay.traces import workload_name

COMMAND = [sys.executable, "-m", "draftd", "demo", "--quick"]


def test_it_shows_every_workload_and_what_a_forward_pass_yields() -> None:
    demo = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stderr
    for path in trace_files():
        row = re.search(rf"^{workload_name(path)} +([\d.]+) \| ([\d.]+) ", demo.stdout, re.MULTILINE)
        assert row is not None
        assert float(row[1]) > float(row[2]) >= 1.0  # more than n-gram lookup, on all of the bundled traffic
    assert re.search(r"each forward pass of the target now yields \d\.\d tokens", demo.stdout)


class Demo:
    """A demo whose streams have begun."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        first_line = process.stdout.readline()
        found = re.search(r"ipc://(\S+)/draftd\.sock", first_line)
        assert found is not None, first_line
        self.folder = Path(found[1])
        self.server = psutil.Process(int((self.folder / "lock").read_text()))
        while "verifier streams replay" not in process.stdout.readline():
            pass

    def last_words(self) -> str:
        """What it says on standard error until it ends."""
        _, errors = self.process.communicate()
        return errors


@contextmanager
def running_demo() -> Iterator[Demo]:
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        demo = Demo(process)
        yield demo
    assert not demo.server.is_running()
    assert not demo.folder.exists()
    _, left = psutil.wait_procs(members_of_session(process.pid), timeout=10)
    assert not left


def members_of_session(session: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError):
            if os.getsid(process.pid) == session:
                members.append(process)
    return members


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_says_so_and_leaves_nothing_running(number: signal.Signals) -> None:
    with running_demo() as demo:
        os.killpg(demo.process.pid, number)  # a terminal's Ctrl-C goes to the whole group
        assert demo.last_words() == "draftd: interrupted; the server is stopped and its files are gone\n"
    assert demo.process.returncode == 1


def test_when_its_server_dies_it_says_so_and_ends() -> None:
    with running_demo() as demo:
        demo.server.kill()
        words = demo.last_words()
    assert re.fullmatch(r"draftd: the server ended with status -9: .*\n", words), words
    assert demo.process.returncode == 1


def test_killed_it_takes_its_server_and_its_streams_along() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        demo = Demo(process)
        process.kill()
    _, left = psutil.wait_procs([demo.server, *members_of_session(process.pid)], timeout=20)
    assert not left
    shutil.rmtree(demo.folder)  # nobody was left to do it
