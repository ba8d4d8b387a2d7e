#!/bin/sh
# The host agent: starts commands that run exactly once, outlive their client, and spool what they print
# until the client has stored it. Any of sh, dash, bash, ksh, zsh and busybox sh reads it. It goes to the host as one
# file: this, kill-tree.sh, attempt.sh, heartbeat.sh, output.sh, emitter.sh, cleanup.sh and
# serve.sh.
#
#   started/ID              the fence, "TOKEN DIR": whoever creates it may start the run, nobody else ever
#   started/.label          a word that no other folder of fences has
#   runs/DIR/               one attempt: go, body, minder, ready (made ahead), claim, cmd, o.* and e.* (spool), stopped,
#                           end.*
#   serve/NAME/             one live serve: fifo (lines to its emitter), ticks, born, alive, agent-*.sh (the name of the
#                           file that it reads), stamp.*, heart, far.*
#
# NAME is BOOT-PID-START of the serve and DIR is NAME-NUMBER, so each says whose it is and whether that one lives.
# A segment of the spool is named by BASE + the offset of its first byte: of one width, so that names sort,
# and never with a leading zero, which arithmetic would take for octal.
#
# Forks cost milliseconds: between a request and its command there is none, and at the end one where it printed.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
# Words are split on purpose wherever a variable stands unquoted, numbered variables are read and set by eval,
# and every shell named above has -nt.

if [ -n "${ZSH_VERSION:-}" ]; then emulate sh; fi
# Before any name is used here, what the account exports under it.
case $1 in serve) environment=$(export -p) ;; esac
set +Cefuvx # as BASH_ENV or SHELLOPTS may have set them
agent=$0
base=$HOME/.windlass
BASE=1000000000000000
# Bytes of a run that its follower has not stored; that one with no more of them sends unasked; that pass at first.
WINDOW=16777216
FREE=32768
LINK=262144
PREPARED=2
patience=''
nl='
'

identify() {
  { IFS= read -r node </proc/sys/kernel/hostname; } 2>/dev/null || node=$(uname -n)
  { IFS= read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null ||
    boot=$(sysctl -n kern.boottime 2>/dev/null | tr -cd '[:digit:]')
  boot=${boot:--}
  boot8=${boot%%-*}
  boot8=${boot8:-none}
}

# start_of PID: sets start, which with PID names a process for good on this boot; false if there is none.
start_of() {
  if [ -r /proc/self/stat ]; then
    { IFS= read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${stat##*") "}
    case $1 in [ZX]) return 1 ;; esac
    parent=$2 session=$4 start=${20}
  else
    start=$(ps -o lstart= -p "$1" 2>/dev/null | tr -cd '[:alnum:]')
    [ -n "$start" ]
  fi
}

is_alive() { start_of "$1" && [ "$start" = "$2" ]; }

# A child of `&` would ignore SIGINT and SIGQUIT for ever, and so would the commands below it. The first setsid
# makes a group leader, so the second forks and its parent ends at once: detached, with no `&`. Python ignores two
# signals of its own accord.
detach() {
  case $tool in
  setsid) setsid setsid "$@" ;;
  perl) perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec @ARGV' "$@" ;;
  *) python3 -c 'import os,sys,signal
if os.fork(): os._exit(0)
[signal.signal(s,signal.SIG_DFL) for s in (signal.SIGPIPE,signal.SIGXFSZ)]; os.setsid(); os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
  esac
}

# lead COMMAND…: the same process, as the leader of a session of its own.
lead() {
  case $tool in
  setsid) setsid "$@" ;;
  perl) perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@" ;;
  *) python3 -c 'import os,sys,signal
[signal.signal(s,signal.SIG_DFL) for s in (signal.SIGPIPE,signal.SIGXFSZ)]; os.setsid(); os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
  esac
}

choose_tool() {
  for tool in setsid perl python3; do
    if command -v $tool >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

# doze TENTHS: where sleep takes no fractions a whole second passes.
doze() { sleep "0.$1" 2>/dev/null || sleep 1; }

# find_end: of $dir; sets code, out, err.
find_end() {
  set -- "$dir"/end.*
  set -- "${1##*/end.}"
  code=${1%%.*} out=${1#*.}
  err=${out#*.} out=${out%.*}
  [ "$code" != '*' ]
}

# read_label: sets said to the label of the folder of fences; false where there is none, or not the whole of it.
read_label() {
  { IFS= read -r said <"$base/started/.label"; } 2>/dev/null || return 1
  case $said in '' | *[!A-Za-z0-9-]*) return 1 ;; esac
}

# give_up: ends the serve, of whatever process of it: a client that was told nothing looks again later, over another link.
give_up() {
  kill -TERM $$
  exit 1
}

# need_fences: that a fence is not to be seen tells something only where the folder is the one that hello named, and can
# be read. label is empty where that could not be given one.
need_fences() {
  if [ ! -d "$base/started/." ]; then give_up; fi
  if [ -z "$label" ] || { read_label && [ "$said" = "$label" ]; }; then return 0; fi
  give_up
}

# is_absent: of $fence.
is_absent() {
  if [ -e "$fence" ]; then return 1; fi
  need_fences
  [ ! -e "$fence" ]
}

# judge ID: sets verdict (absent, stopped, running, ended, lost, wrong_node), and token, dn, dir of its attempt. Where many
# are judged, patience says how often they may be looked at again in all.
judge() {
  verdict=absent fence=$base/started/$1 tries=0 where='' its_boot=''
  if is_absent; then return 0; fi
  # The fence is created and then written: empty for longer than a moment means that its maker died between.
  until token='' dn='' && { read -r token dn <"$fence"; } 2>/dev/null && [ -n "$dn" ]; do
    if is_absent; then return 0; fi
    dir=$base/runs/- verdict=lost
    if [ $tries -ge "${patience:-40}" ]; then
      if ! { true <"$fence"; } 2>/dev/null; then give_up; fi
      if [ -n "$patience" ]; then patience=0; fi
      return 0
    fi
    tries=$((tries + 1)) verdict=absent
    doze 05
  done
  if [ -n "$patience" ]; then patience=$((patience - tries)); fi
  dir=$base/runs/$dn
  if [ "$token" = -stopped ]; then
    verdict=stopped
    return 0
  fi
  if find_end; then
    verdict=ended
    return 0
  fi
  verdict=lost
  if ! { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null; then
    if [ ! -d "$base/runs/." ]; then give_up; fi
    return 0
  fi
  if [ "$where" != "$node" ]; then
    verdict=wrong_node
  elif [ "$its_boot" = "$boot" ] && is_alive "$pid" "$its_start"; then
    verdict=running
  elif find_end; then # it ended between the first look and its death
    verdict=ended
  fi
}

# create FILE LINE: true only for the one that creates it; LINE may be missing on a full disk.
create() {
  set -C
  if { true >"$1"; } 2>/dev/null; then
    set +C
    { printf '%s\n' "$2" >"$1"; } 2>/dev/null # zsh's echo takes a lone `-` for an option
    return 0
  fi
  set +C
  return 1
}

main() {
  if [ $((2147483647 + 1)) -lt 0 ]; then # mksh counts to 2 GiB
    # Where /bin/sh is one too, each would hand over to the next for ever.
    case $1 in serve)
      case $(/bin/sh -c 'echo $((2147483647 + 1))') in
      -*) refuse 'needs dash, bash, ksh, zsh or busybox sh as /bin/sh: the one here counts to 2 GiB alone, as mksh does' ;;
      esac
      ;;
    esac
    exec /bin/sh "$agent" "$@"
  fi
  "$@"
}
