"""Scripts of POSIX sh that the client has a host run."""

from __future__ import annotations

import re
import shlex
from typing import List, NamedTuple, Optional

from ..errors import WindlassError
from .api import Api
from .jobs import start_job, wait_for_result

#: So many names stand in one line of a script.
NAMES = 100
RIGHTS_OF_GROUP = 0o070
#: Nobody comes back to pieces that are so old.
OLD_DAYS = 7
#: The names of all folders of pieces begin with one of 64 bits.
DIGEST = "[0-9a-f]" * 16
#: Functions for a folder of pieces. Another account that may write to the folder around it can give its name to
#: something else, but not change where a shell is: so each looks at the folder in which it already is.
FOLDER_OF_PIECES = r"""
closed() { [ -O . ] && case $(ls -nd .) in d????-??-*) ;; *) false ;; esac; }
enter() { [ ! -L "$1" ] && cd "$1" 2>/dev/null && closed; }
drop() (
  [ ! -L "$1" ] && cd "$1" && [ -O . ] || exit
  ls -A | grep -Eqv '^([0-9]+-[0-9]+|whole(-[0-9]+)?|\.windlass-.*)$' && exit
  rm -f [0-9]*-* whole* .windlass-*
  rmdir "$1"
) 2>/dev/null
"""


class PieceFolder(NamedTuple):
    """Where the pieces of a file are on its host."""

    #: Absolute; beside the target, so that a rename puts the file in its place.
    path: str
    #: Absolute; where it was a link, what that names.
    target: str
    #: The permissions of what is there, or those of a new file.
    mode: int


async def make_folder(api: Api, sid: str, target: str, name: str, parents: bool) -> PieceFolder:
    """Makes the folder for the pieces of a file."""
    _refuse_other_name(target)
    output = await _run(
        api,
        sid,
        f"""{FOLDER_OF_PIECES}
t={shlex.quote(target)}
if [ -L "$t" ]; then t=$(readlink -f "$t") || refuse not_written 'it is a link to nowhere'; fi
! command -v iconv >/dev/null || printf %s "$t" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1 ||
  refuse invalid_input 'its path is not UTF-8'
[ ! -d "$t" ] || refuse not_written 'it is a directory'
[ ! -e "$t" ] || [ -f "$t" ] || refuse not_written 'it is no regular file'
d=${{t%/*}}
d=${{d:-/}}
[ -d "$d" ] || {{ {'mkdir -p "$d" 2>/dev/null' if parents else "false"}; }} || refuse not_found 'its folder is missing'
for other in "$d"/.windlass-{DIGEST}*-*; do
  [ -z "$(find "$other" -prune -type d -mtime +{OLD_DAYS} 2>/dev/null)" ] || drop "$other"
done
p=$d/{name}
mkdir -m 700 "$p" 2>/dev/null || refuse not_written 'nothing can be written beside it'
(enter "$p") || {{ rmdir "$p"; refuse not_private "$p is not this account's alone"; }}
m=$(ls -ndL "$t" 2>/dev/null) || m=-
printf '%s %s %s' "$(umask)" "${{m%% *}}" "$t"
""",
    )
    umask, permissions, found = output.split(" ", 2)
    _refuse_other_name(found)
    mode = _read_mode(permissions, 0o666 & ~int(umask, 8))
    return PieceFolder(f"{found.rpartition('/')[0]}/{name}", found, mode)


async def join_pieces(
    api: Api, sid: str, folder: PieceFolder, names: List[str], size: int, digest: str, mode: Optional[int] = None
) -> bool:
    """Puts the whole file in its place, and removes the pieces; False where they are not the file that was meant.

    Without `mode` it keeps that of what is there; another group gets no rights by it. The digest, in hexadecimal
    digits, is looked at where the host has a program for it.
    """
    groups = (names[at : at + NAMES] for at in range(0, len(names), NAMES))
    cats = "".join(f" &&\n  cat {' '.join(group)}" for group in groups)
    output = await _run(
        api,
        sid,
        f"""{FOLDER_OF_PIECES}
p={shlex.quote(folder.path)}
t={shlex.quote(folder.target)}
w=whole
all() {{ :{cats}; }}
umask 077
set -C
enter "$p" || refuse not_written "$p is not this account's alone"
rm -f "$w"
if ! {{ all >"$w"; }} 2>/dev/null && [ "$(all 2>/dev/null | wc -c)" -eq {size} ]; then
  refuse not_written 'there is no room for it'
fi
set -- $(sha256sum <"$w" 2>/dev/null || shasum -a 256 <"$w" 2>/dev/null || echo {digest})
if [ "$(wc -c <"$w")" -eq {size} ] && [ "$1" = {digest} ]; then
  m={folder.mode if mode is None else mode:04o}
  set -- $(ls -ndL "$t" 2>/dev/null)
  [ -z "$4" ] || chgrp "$4" "$w" 2>/dev/null || m={folder.mode & ~RIGHTS_OF_GROUP if mode is None else mode:04o}
  chmod "$m" "$w" 2>/dev/null
  sync "$w" 2>/dev/null
  [ ! -d "$t" ] && mv -f "$w" "$t" 2>/dev/null || refuse not_written 'it cannot be replaced'
  echo whole
fi
drop "$p"
exit 0
""",
    )
    return output == "whole\n"


async def remove_folder(api: Api, sid: str, folder: PieceFolder) -> None:
    await _run(api, sid, f"{FOLDER_OF_PIECES}drop {shlex.quote(folder.path)}\nexit 0\n")


async def find_home(api: Api, sid: str) -> str:
    """The account's home, where its commands begin."""
    home = await _run(
        api,
        sid,
        """cd 2>/dev/null && printf '%s' "$PWD"
exit 0
""",
    )
    if not home:
        raise WindlassError("The account has no home on its host.", code="not_found", hint="Give an absolute path.")
    return home


async def _run(api: Api, sid: str, script: str) -> str:
    """What the script prints. It names its target `t`, and says by `refuse`, with an error's code, why it stops."""
    stdin = (
        "LC_ALL=C; export LC_ALL\n"
        """refuse() { printf '%s:%s cannot be written: %s' "$1" "$t" "$2" >&2; exit 9; }\n"""
        f"{script}"
    )
    body = {"sid": sid, "command": "/bin/sh", "stdin": stdin, "name": "windlass cp"}
    result = await wait_for_result(api, await start_job(api, "/remotes/launch", body))
    if result.returncode == 0:
        return result.output
    said = result.errors.strip()
    refused = re.match(r"(\w+):(.*)", said, re.DOTALL)
    code, detail = refused.groups() if refused else ("not_written", said)
    failure = WindlassError(
        f"{detail or f'the shell of the host ended with {result.returncode}'}.",
        code=code,
        hint="Nothing was changed there.",
    )
    failure.job = result.job
    raise failure


def _refuse_other_name(path: str) -> None:
    """A path of a host that is not UTF-8 was decoded to that of another file."""
    if "\ufffd" in path:
        raise WindlassError(
            f"{path} cannot be written: its path is not UTF-8.",
            code="invalid_input",
            hint="Rename what it names on the host, or write it by a command.",
        )


def _read_mode(permissions: str, otherwise: int) -> int:
    """As `ls -l` prints them, such as `-rw-r--r--`; the letters of set-user-id and sticky are not taken."""
    letters = permissions[1:10]
    if not re.fullmatch(r"([-r][-w].){3}", letters):
        return otherwise
    mode = int("".join("1" if letter in "rwxst" else "0" for letter in letters), 2)
    # Where there is an ACL the letters of the group are the most that it gives to anyone.
    return mode & ~RIGHTS_OF_GROUP if permissions.endswith("+") else mode
