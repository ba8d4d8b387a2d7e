"""`%%windlass HOST`: runs a notebook's cell on a host. `%load_ext windlass` brings it."""

from __future__ import annotations

import codecs
import getpass
import sys
import threading
from argparse import Namespace
from contextlib import closing, contextmanager
from typing import Any, Dict, Generator, Iterator, Optional

from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.utils.process import arg_split

from ._core.api import escape
from ._core.jobs import to_result
from ._sync.client import Client
from ._sync.session import Session
from .errors import WindlassError
from .records import Event, OutputEvent, StateEvent

#: How long output may wait, with more, until it is seen.
FLUSH_SECONDS = 0.1


@magics_class
class WindlassMagics(Magics):
    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._client: Optional[Client] = None

    @magic_arguments()
    @argument("host", help="The name of a host of the service.")
    @argument("--user", default=None, help="The account there; by default the one you are logged in as.")
    @argument(
        "--key", default=None, help="The file of a private key, where no session is open; else a password is asked for."
    )
    @argument("--cwd", default=None, help="The folder there.")
    @argument(
        "--client", default=None, help="A variable that holds a windlass.Client; else WINDLASS_URL and WINDLASS_TOKEN."
    )
    @argument("--no-raise-error", action="store_true", help="Go on whatever the exit status is.")
    @cell_magic
    def windlass(self, line: str, cell: str) -> None:
        """Runs the cell by the account's own shell and prints its output as it comes, in the session that is open
        there.

        Where none is open it opens one, which later cells use. Interrupting the cell cancels the command.
        """
        given = self._parse(line)
        client = self._find_client(given.client)
        try:
            session = find_session(client, given)
            run = session.run(cell, cwd=given.cwd)
        except WindlassError as error:
            if error.status == 401:
                # The next cell takes the token of a later `windlass login`.
                self._client = None
            raise
        try:
            show(run.events())
        except KeyboardInterrupt:
            run.cancel()
            # Where in the client that was is of no use to whoever did it.
            raise KeyboardInterrupt from None
        # What it printed was shown: it is not fetched again.
        result = to_result(client.wait(run, check=True))
        if not given.no_raise_error:
            result.check_returncode()

    def _parse(self, line: str) -> Namespace:
        try:
            # parse_argstring() keeps quotes.
            words = arg_split(line, posix=True)
        except ValueError as error:
            raise UsageError(f"{error}.") from None
        given: Namespace = self.windlass.parser.parse_args(words)
        return given

    def _find_client(self, name: Optional[str]) -> Client:
        if name is None:
            if self._client is None:
                self._client = Client()
            return self._client
        variables: Dict[str, Any] = {} if self.shell is None else self.shell.user_ns
        found = variables.get(name)
        if not isinstance(found, Client):
            raise UsageError(f"{name} is no windlass.Client.")
        return found


def find_session(client: Client, given: Namespace) -> Session:
    """The open session of this host and account, or a new one.

    Without an account it is that of the only one with a session, and a new one is for this machine's user.
    """
    there = [
        session
        for session in client.sessions()
        # Who has not answered the host yet is not logged in.
        if session.hostname == given.host and session.state != "challenge" and given.user in (None, session.username)
    ]
    accounts = sorted({session.username for session in there})
    if len(accounts) > 1:
        # A command for one account must not run as another one, such as root.
        raise UsageError(
            f"You are logged in to {given.host} as {' and as '.join(accounts)}: give --user {accounts[0]}."
        )
    for session in there:
        if session.state == "open":
            return client.session(session.sid)
    # Nobody types a password for what is not there.
    require_host(client, given.host)
    user: str = accounts[0] if accounts else given.user or getpass.getuser()
    if given.key is not None:
        return client.open(given.host, user, private_key=given.key)
    try:
        password = getpass.getpass(f"Password of {user} at {given.host}: ")
    except (StdinNotImplementedError, EOFError):
        # Nobody is there to be asked.
        raise UsageError(f"No session is open on {given.host} as {user}: give --key FILE.") from None
    return client.open(given.host, user, password=password or None)


def require_host(client: Client, name: str) -> None:
    try:
        client.request("GET", f"/hosts/{escape(name)}")
    except WindlassError as error:
        if error.status != 404:
            raise
        raise UsageError(f"There is no host {name}.") from None


def show(events: Iterator[Event]) -> None:
    """Prints output as it comes, not by lines: progress bars go back to the begin of theirs, prompts have no end."""
    decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in ("stdout", "stderr")}

    def write(stream: str, data: bytes, final: bool = False) -> None:
        (sys.stderr if stream == "stderr" else sys.stdout).write(decoders[stream].decode(data, final))

    with flushing(), closing(tell_waits(events)) as told:
        for event in told:
            if isinstance(event, OutputEvent):
                write(event.stream, event.data)
        for stream in decoders:
            write(stream, b"", final=True)


def tell_waits(events: Iterator[Event]) -> Generator[Event, None, None]:
    """Passes events on, and says why the command waits: once until it prints again, for a host may come and go."""
    told: Optional[str] = None
    for event in events:
        if isinstance(event, OutputEvent):
            told = None
        elif isinstance(event, StateEvent) and event.message and event.message != told:
            told = event.message
            print(f"windlass: {told}", file=sys.stderr)
        yield event


@contextmanager
def flushing() -> Iterator[None]:
    """Shows what is printed meanwhile, soon: a flush for each line would be a message to the notebook for each."""
    # Those of a notebook's kernel do it themselves.
    streams = [stream for stream in (sys.stdout, sys.stderr) if not hasattr(stream, "flush_interval")]
    ended = threading.Event()

    def flush() -> None:
        for stream in streams:
            stream.flush()

    def flush_again_and_again() -> None:
        while not ended.wait(FLUSH_SECONDS):
            flush()

    thread = threading.Thread(target=flush_again_and_again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        flush()
