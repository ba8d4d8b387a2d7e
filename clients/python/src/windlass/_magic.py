"""`%%windlass HOST`: runs a notebook's cell on a host. `%load_ext windlass` brings it."""

from __future__ import annotations

import getpass
import sys
from argparse import Namespace
from typing import Any, Dict, Optional

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ._core.api import escape
from ._sync.client import Client
from ._sync.run import Run
from ._sync.session import Session
from .errors import WindlassError


@magics_class
class WindlassMagics(Magics):
    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._client: Optional[Client] = None

    @magic_arguments()
    @argument("host", help="The name of a host of the service.")
    @argument("--user", default=None, help="The account there; that of this machine's user unless given.")
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
        given: Namespace = parse_argstring(self.windlass, line)
        try:
            session = find_session(self._find_client(given.client), given)
            run = session.run(cell, cwd=given.cwd)
        except WindlassError as error:
            if error.status == 401:
                # The next cell takes the token of a later `windlass login`.
                self._client = None
            raise
        try:
            show(run)
        except KeyboardInterrupt:
            run.cancel()
            # Where in the client that was is of no use to whoever did it.
            raise KeyboardInterrupt from None
        result = run.wait()
        if not given.no_raise_error:
            result.check_returncode()

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
    """The open session of this host and account, or a new one."""
    user: str = given.user or getpass.getuser()
    for session in client.sessions():
        if (session.hostname, session.username, session.state) == (given.host, user, "open"):
            return client.session(session.sid)
    # Nobody types a password for what is not there.
    require_host(client, given.host)
    if given.key is not None:
        return client.open(given.host, user, private_key=given.key)
    password = getpass.getpass(f"Password of {user} at {given.host}: ")
    return client.open(given.host, user, password=password or None)


def require_host(client: Client, name: str) -> None:
    try:
        client.request("GET", f"/hosts/{escape(name)}")
    except WindlassError as error:
        if error.status != 404:
            raise
        raise UsageError(f"There is no host {name}.") from None


def show(run: Run) -> None:
    for line in run:
        print(line.text, file=sys.stderr if line.stream == "stderr" else sys.stdout, flush=True)
