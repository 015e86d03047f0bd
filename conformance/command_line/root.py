"""The command as a whole: its sub-commands, and how every error is handled."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from ...spec.errors import NormspecError, near
from ..judging.defects import trace, words
from .exit_status import EXIT_PARTIAL, EXIT_UNUSABLE
from .interruption import Interruptions
from .option_meant import option_meant

#: The sub-commands, each with its file, in which it has the name of the file.
COMMANDS = {
    "check": "check",
    "compare": "compare",
    "diff": "diff",
    "identify": "identify",
    "selftest": "selftest",
    "campaign": "campaign",
    "page": "page",
    "study": "study",
    "explain": "explain",
    "list": "listing",
}


#: The variable by which a shell asks what may stand at a place (docs/configuring.md).
_COMPLETE = "_NORMSPEC_COMPLETE"


class LazyGroup(click.Group):
    """A group that imports a sub-command only when it is used: one of them loads every known mistake."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all sub-commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The sub-command of this name, or None."""
        file = COMMANDS.get(cmd_name)
        return None if file is None else getattr(import_module(f".{file}", __package__), file)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="normspec", message="normspec %(version)s")
def normspec() -> None:
    """Check what normalisation layers compute against an exact specification."""


def _print_error(message: str) -> None:
    """Print an error in one line, without the line breaks of its message."""
    click.echo(f"normspec: {' '.join(message.split())}", err=True)


def _meant(word: str) -> str:
    """What somebody may have meant by a word that is no sub-command: a target to check, or one that is spelled so."""
    from ...adapters.targets import TARGETS  # after a mistake alone, so that a command starts at once

    meant = near(word, COMMANDS)
    if word in TARGETS or ".py" in word or ":" in word:
        meant = [f"check {word}"]
    return f"; did you mean `normspec {meant[0]}`?" if meant else ""


def _usage(error: click.ClickException, arguments: Sequence[str]) -> str:
    """The message, and the command whose help says more; a parser that fails early does not know the sub-command."""
    message = error.format_message().rstrip(".")
    if arguments and message.startswith("No such command"):
        message += _meant(arguments[0])
    if isinstance(error, click.NoSuchOption) and (meant := option_meant(error)):
        message = f"No such option '{error.option_name}'; did you mean `{meant}`?"
    context = getattr(error, "ctx", None)
    command = next((f"normspec {word}" for word in arguments[:1] if word in COMMANDS), "normspec")
    return f"{message} (see `{context.command_path if context else command} --help`)"


def run(arguments: Sequence[str] | None = None, interruptions: Interruptions | None = None) -> int:
    """Run the command with these arguments (default: the process's own) and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the stream cannot encode must not turn a verdict into a traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    try:
        status = normspec.main(args=arguments, prog_name="normspec", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return EXIT_UNUSABLE
    except click.ClickException as error:
        _print_error(_usage(error, sys.argv[1:] if arguments is None else arguments))
        return EXIT_UNUSABLE
    except NormspecError as error:
        _print_error(str(error))
        return EXIT_UNUSABLE
    except SystemExit as ended:  # click raises it when the reader has closed the output, and for a shell that completes
        if _COMPLETE in os.environ:
            return ended.code if isinstance(ended.code, int) else 0
        if isinstance(ended.__context__, OSError) and ended.__context__.errno == errno.EPIPE:
            raise BrokenPipeError from None
        return _print_defect(ended)
    except (click.Abort, KeyboardInterrupt):
        again = interruptions is not None and interruptions.count > 1
        _print_error(
            "interrupted again, before what was established was reported"
            if again
            else "interrupted before anything was established"
        )
        return EXIT_PARTIAL
    except OSError:  # of the output: `main` tells it
        raise
    except Exception as error:
        return _print_defect(error)
    return status if isinstance(status, int) else 0


def _print_defect(error: BaseException) -> int:
    """Print an error that nothing foresaw. Python would end the process with 1, which says that a MUST is violated."""
    click.echo(trace(error), err=True, nl=False)
    _print_error(f"{words(error)}; please report it with the lines above")
    return EXIT_PARTIAL


#: What an output may answer that takes nothing more.
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EAGAIN)


def _is_gone(folder: str) -> bool:
    try:
        os.path.abspath(folder)
    except OSError:
        return True
    return False


def _forget_interruption() -> None:
    """
    Let the process end with its exit status after a Ctrl-C that was handled.

    CPython notes a KeyboardInterrupt that leaves an exec of a string, such as those of attrs during imports, and ends
    the process by SIGINT in the end, even if it was caught outside. The next exec of a string drops that note.
    """
    exec("")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. A reader that closes the pipe early (`normspec check | head`) is not an error."""
    if sys.stdout is None:  # the parent process closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it is open until the process ends
    interruptions = Interruptions()
    interruptions.listen()
    try:
        status = run(arguments, interruptions)
        interruptions.over()
        sys.stdout.flush()
        _forget_interruption()
        return status
    except BrokenPipeError:
        # Discard what is still buffered, because Python would complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PARTIAL
    except OSError as error:
        if _is_gone(os.curdir):
            _print_error("the working directory is gone: change to another one")
            return EXIT_UNUSABLE
        if error.errno not in _OF_OUTPUT:
            return _print_defect(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _print_error(
            f"the output cannot be written: {error.strerror or error}; write to a file or a terminal that takes it"
        )
        return EXIT_PARTIAL
