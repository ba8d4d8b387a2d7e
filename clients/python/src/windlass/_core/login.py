from __future__ import annotations

import getpass
import inspect
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ..errors import WindlassError
from ..records import Prompt
from .api import Api, escape

#: Answers what a host asks at a login; with AsyncClient it may be a coroutine function.
Answer = Callable[[Prompt], Union[str, Awaitable[str]]]
#: The text of a private key, or the file that has it.
PrivateKey = Union[str, "os.PathLike[str]"]

#: A host that is not reached is tried for a minute.
LOGIN_SECONDS = 180.0


@dataclass(frozen=True)
class Jump:
    """A login on the jump host of a host; `jump` is for the one before that."""

    username: str
    password: Optional[str] = field(default=None, repr=False)
    private_key: Optional[PrivateKey] = field(default=None, repr=False)
    passphrase: Optional[str] = field(default=None, repr=False)
    certificate: Optional[str] = field(default=None, repr=False)
    jump: Optional[Jump] = None


def to_credential(
    password: Optional[str],
    private_key: Optional[PrivateKey],
    passphrase: Optional[str],
    certificate: Optional[str],
    jump: Optional[Jump],
) -> Dict[str, Any]:
    given = {
        "password": password,
        "privateKey": None if private_key is None else read_private_key(private_key),
        "passphrase": passphrase,
        "certificate": certificate,
        "jump": None if jump is None else _to_jump(jump),
    }
    return {name: value for name, value in given.items() if value is not None}


def _to_jump(jump: Jump) -> Dict[str, Any]:
    credential = to_credential(jump.password, jump.private_key, jump.passphrase, jump.certificate, jump.jump)
    return {"username": jump.username, **credential}


def read_private_key(key: PrivateKey) -> str:
    if isinstance(key, str) and "-----BEGIN" in key:
        return key
    return Path(key).expanduser().read_text()


async def log_in(api: Api, path: str, body: Mapping[str, Any], answer: Optional[Answer]) -> Tuple[str, Optional[str]]:
    """Logs in, and answers what the host asks; the session's id, and the banner that the host shows."""
    given = {name: value for name, value in body.items() if value is not None}
    # The service ends the login of a client that is gone, so that a repeated one begins anew.
    response = await api.request("POST", path, body=given, keyed=True, renewed=True, timeout=LOGIN_SECONDS)
    data = api.read_json(response)
    while response.status_code == 202:
        sid = data["sid"]
        try:
            answers = await _answer_all(api, data, answer or ask_on_terminal)
            response = await api.request(
                "POST",
                f"/remotes/{escape(sid)}/answers",
                body={"challenge": data["challenge"], "answers": answers},
                keyed=True,
                timeout=LOGIN_SECONDS,
            )
        except BaseException:
            # It would stay until nobody can answer any more.
            if path == "/remotes":
                with api.transport.shield():
                    await close_session(api, sid)
            raise
        data = api.read_json(response)
    return str(data["sid"]), data.get("banner")


async def close_session(api: Api, sid: str) -> None:
    """Ends a session and cancels its jobs; nothing where it has ended."""
    try:
        await api.request("DELETE", f"/remotes/{escape(sid)}", safe=True)
    except WindlassError as error:
        if error.status != 404:
            raise


async def _answer_all(api: Api, challenge: Dict[str, Any], answer: Answer) -> List[str]:
    answers: List[str] = []
    for prompt in challenge["prompts"]:
        asked = Prompt(prompt["text"], prompt["echo"], challenge.get("instruction", ""))
        # A terminal blocks.
        given = await api.transport.call(lambda asked=asked: answer(asked))  # type: ignore[misc]
        answers.append(await given if inspect.isawaitable(given) else given)
    return answers


def ask_on_terminal(prompt: Prompt) -> str:
    """Asks whoever sits at the terminal or the notebook; raises where there is nobody."""
    if not (sys.stdin is not None and sys.stdin.isatty()) and "ipykernel" not in sys.modules:
        raise WindlassError(
            f"The host asks {prompt.text!r}, and there is no terminal to ask at.",
            code="answer_required",
            hint="Give a callback as answer=.",
        )
    if prompt.instruction:
        print(prompt.instruction)
    return input(prompt.text) if prompt.echo else getpass.getpass(prompt.text)


def to_login(
    host: str,
    username: Optional[str],
    credential: Mapping[str, Any],
    **options: Any,
) -> Dict[str, Any]:
    user = getpass.getuser() if username is None else username
    return {"hostname": host, "username": user, **credential, **options}
