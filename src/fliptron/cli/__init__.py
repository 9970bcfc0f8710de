"""The command line: each command parses, calls one function, and formats what comes back."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run a command. Whatever goes wrong is one sentence and an exit code."""
    try:
        try:
            import click  # noqa: PLC0415  # an interrupt here is caught too

            from fliptron.cli.group import commands  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name not in ("click", "rich"):
                raise
            _say(f"Error: the command line needs {error.name}; get it with: pip install 'fliptron[lab]'")
            sys.exit(2)
        try:
            code = commands.main(standalone_mode=False)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except click.Abort as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            code = 1
        finally:
            if sys.stdout is not None:  # closed before it began
                sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done, and Python's own end would die of it
        sys.exit(code if isinstance(code, int) else 0)
    except KeyboardInterrupt:
        _say("Interrupted.")
        sys.exit(130)
    except BrokenPipeError:  # the reader has gone
        _close()
        sys.exit(1)
    except OSError as error:
        _close()
        _say(f"Error: the output cannot be written ({error.strerror})")
        sys.exit(1)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201  # where click may not be there


def _close() -> None:
    """Give what could not be written to nobody, so that Python does not try again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
