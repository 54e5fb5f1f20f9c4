"""The command line. An error is one line on standard error and a status that is not 0, never a traceback."""

import os
import sys
from importlib.metadata import version

import typer

from draftd.cli import corpus, explain, serve, show
from draftd.cli.failure import Failure, Interrupted

_commands = typer.Typer(
    name="draftd",
    help="Drafts for speculative decoding from suffix indexes, without a draft model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_commands.command("serve")(serve.serve)
_commands.command("config")(serve.config)
_commands.command("health")(serve.health)
_commands.command("explain")(explain.explain)
_commands.command("replay")(show.replay)
_commands.command("demo")(show.demo)
_commands.add_typer(corpus.commands, name="corpus")


@_commands.callback(invoke_without_command=True)
def _root(version_wanted: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version_wanted:
        typer.echo(f"draftd {version('draftd')}")
        raise typer.Exit


def main() -> None:
    """Entry point of `draftd`."""
    # gRPC's core would write lines of its own to standard error beside ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        status = _commands(standalone_mode=False)
    except (Failure, typer.TyperException) as error:
        if message := _one_line(error):  # none when help was shown instead
            sys.stderr.write(f"draftd: {message}\n")
        status = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        status = Interrupted.exit_code
    except BrokenPipeError:
        # Who read our output has gone. Python would complain once more when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


def _one_line(error: Failure | typer.TyperException) -> str:
    message = error.format_message() if isinstance(error, typer.TyperException) else str(error)
    return " ".join(message.replace(": Value error, ", ": ").split())  # words of the library that reads choices
