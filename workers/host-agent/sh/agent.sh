#!/bin/sh
# The host agent starts each command exactly once, keeps it running when the client disconnects, and spools its output
# until the client has stored it. It runs under sh, dash, bash, ksh, zsh and busybox sh. These files are sent as one:
# agent.sh, kill-tree.sh, spool.sh, attempt.sh, heartbeat.sh, output.sh, emitter.sh, cleanup.sh, serve.sh.
#
#   started/ID        the fence of run ID, "TOKEN ATTEMPT". Only the process that creates it may start the run.
#   started/.label    identifies this directory of fences (decision 26)
#   runs/ATTEMPT/     when prepared: go, note, out, err (fifos), waiter, supervisor, child, ready, spare, spare.exit;
#                     when requested: claim, cmd, script, o.* and e.* (spooled stdout and stderr), exit.* (exit status),
#                     stopped, end.*; after a process of the agent was killed: heir.*, cut.*, and unsure.* for end.*
#   serve/NAME/       one serve process: fifo (lines to its emitter), ticks, born (its node), alive, environment, login,
#                     agent-*.sh (the agent file in use), stamp.*, heartbeat, seen.*
#
# NAME is BOOT-PID-START of the serve, and ATTEMPT is NAME-NUMBER: each name tells whether its owner is alive. A spool
# segment is named BASE + the offset of its first byte: such names sort, and have no leading zero, which means octal.
#
# A fork costs milliseconds: there is none between a request and its command, and one at the end of a run with output.
# shellcheck shell=sh disable=SC2012,SC2013,SC2016,SC2034,SC2046,SC2086,SC2153,SC2154,SC3013,SC3040,SC3044,SC3045
# Variables are split on purpose, numbered ones are accessed by eval, and all these shells have -nt.

if [ -n "${ZSH_VERSION:-}" ]; then emulate sh; fi
# Saved before this script overwrites a variable that the account exports. Of bash, functions too: one would take the
# place of a utility or a builtin here. They come back in commands alone, and no other process of the agent has them.
case $1${BASH_VERSION:+-bash} in
serve-bash) environment=$(export -p && set +o posix && export -fp) ;;
serve) environment=$(export -p) ;;
esac
set +Cefuvx # BASH_ENV or SHELLOPTS may have set them
case $1${BASH_VERSION:+-bash} in serve-bash) unset -f $(declare -F) ;; esac
agent=$0
base=$HOME/.windlass
BASE=1000000000000000
# Bytes: the most unacknowledged output of one run; what a run may send without credit; the credit at the start.
WINDOW=16777216
FREE=32768
LINK=262144
PREPARED=1
# Processes that a run may need: the agent's, the next attempt's, and some of the command's own.
PLACES=14
retries_left=''
nl='
'

identify_host() {
  { IFS= read -r node </proc/sys/kernel/hostname; } 2>/dev/null || node=$(uname -n)
  { IFS= read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null ||
    boot=$(sysctl -n kern.boottime 2>/dev/null | tr -cd '[:digit:]')
  boot=${boot:--}
  boot8=${boot%%-*}
  boot8=${boot8:-none}
}

# read_process PID: sets start, and with /proc also parent and session; false if there is no such process. PID and start
# identify a process on this boot.
read_process() {
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

is_alive() { read_process "$1" && [ "$start" = "$2" ]; }

# detach COMMAND…: starts it in a session of its own. Not by `&`, whose children, and so their commands, ignore SIGINT
# and SIGQUIT. A setsid without -f is called twice: the first makes a group leader, so that the second forks. Python
# ignores SIGPIPE and SIGXFSZ by default.
detach() {
  case $tool in
  setsid) setsid $forking "$@" ;;
  perl) perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec @ARGV' "$@" ;;
  *) python3 -c 'import os,sys,signal
if os.fork(): os._exit(0)
[signal.signal(s,signal.SIG_DFL) for s in (signal.SIGPIPE,signal.SIGXFSZ)]; os.setsid(); os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
  esac
}

# lead_session COMMAND…: runs it as the leader of a new session.
lead_session() {
  case $tool in
  setsid) setsid "$@" ;;
  perl) perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@" ;;
  *) python3 -c 'import os,sys,signal
[signal.signal(s,signal.SIG_DFL) for s in (signal.SIGPIPE,signal.SIGXFSZ)]; os.setsid(); os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
  esac
}

choose_detach_tool() {
  forking=setsid
  if setsid -f true; then forking=-f; fi
  for tool in setsid perl python3; do
    if command -v $tool >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

# sleep_fraction DIGITS: sleeps 0.DIGITS seconds, or a whole second where sleep takes no fractions.
sleep_fraction() { sleep "0.$1" 2>/dev/null || sleep 1; }

# find_end: reads the end record of the run in $dir into code, out, err; false without one. For an uncertain end, code
# is `unsure-CODE-OUT-ERR[-cut]`: the status or `-`, the sure bytes of each stream, and `-cut` if bytes after these may
# be missing.
find_end() {
  set -- "$dir"/end.*
  if [ "${1##*/}" = 'end.*' ]; then
    set -- "$dir"/unsure.*
    if [ "${1##*/}" = 'unsure.*' ]; then return 1; fi
  fi
  record=${1##*/}
  fields=$IFS IFS=.
  set -- $record
  IFS=$fields
  code=$2 out=$3 err=$4
  if [ "$1" = unsure ]; then code=unsure-$2-$5-$6${7:+-$7}; fi
}

# is_listed: whether the directory $dir can be listed, and not merely looked up. Otherwise a glob that matches nothing
# does not tell that there is no such file. supervisor is there from before the first output.
is_listed() {
  set -- "$dir"/[s]upervisor
  [ -e "$1" ]
}

# has_waiter: whether the waiter of the attempt in $dir is alive; then the run lives, even without its supervisor.
has_waiter() { { read -r pid its_start <"$dir/waiter"; } 2>/dev/null && is_alive "$pid" "$its_start"; }

# read_label: sets found_label to the label of the directory of fences; false if it is missing or incomplete.
read_label() {
  { IFS= read -r found_label <"$base/started/.label"; } 2>/dev/null || return 1
  case $found_label in '' | *[!A-Za-z0-9-]*) return 1 ;; esac
}

# abort_serve: ends the serve from any of its processes. The client gets no answer, so it reconnects and asks again.
abort_serve() {
  kill -TERM $$
  exit 1
}

# require_fences: aborts the serve unless the directory of fences is readable and the one of hello (decision 26).
# label is empty if the directory could not be labelled.
require_fences() {
  if [ ! -d "$base/started/." ]; then abort_serve; fi
  if [ -z "$label" ] || { read_label && [ "$found_label" = "$label" ]; }; then return 0; fi
  abort_serve
}

# has_no_fence: whether $fence does not exist.
has_no_fence() {
  if [ -e "$fence" ]; then return 1; fi
  require_fences
  [ ! -e "$fence" ]
}

# find_run_state ID: sets run_state (absent, stopped, running, ended, lost, wrong_node), token, attempt, dir.
# retries_left, if set, limits the retries for a whole batch of runs.
find_run_state() {
  run_state=absent fence=$base/started/$1 tries=0 its_node='' its_boot=''
  if has_no_fence; then return 0; fi
  # A fence is created and then written: if it stays empty, its creator died in between.
  until token='' attempt='' && { read -r token attempt <"$fence"; } 2>/dev/null && [ -n "$attempt" ]; do
    if has_no_fence; then return 0; fi
    dir=$base/runs/- run_state=lost
    if [ $tries -ge "${retries_left:-40}" ]; then
      if ! { true <"$fence"; } 2>/dev/null; then abort_serve; fi
      if [ -n "$retries_left" ]; then retries_left=0; fi
      return 0
    fi
    tries=$((tries + 1)) run_state=absent
    sleep_fraction 05
  done
  if [ -n "$retries_left" ]; then retries_left=$((retries_left - tries)); fi
  dir=$base/runs/$attempt
  if [ "$token" = -stopped ]; then
    run_state=stopped
    return 0
  fi
  if find_end; then
    run_state=ended
    return 0
  fi
  run_state=lost
  # Nothing that is unreadable for a moment is missing.
  until { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null; do
    if [ ! -d "$base/runs/." ] || { [ -d "$dir" ] && [ ! -d "$dir/." ]; }; then abort_serve; fi
    if [ $tries -ge "${retries_left:-20}" ]; then return 0; fi
    tries=$((tries + 1))
    if [ -n "$retries_left" ]; then retries_left=$((retries_left - 1)); fi
    sleep_fraction 05
    if find_end; then
      run_state=ended
      return 0
    fi
  done
  if [ "$its_node" != "$node" ]; then
    run_state=wrong_node
  elif [ "$its_boot" = "$boot" ] && { is_alive "$pid" "$its_start" || has_waiter || has_heir; }; then
    run_state=running
  elif find_end; then # it ended between the two checks
    run_state=ended
  fi
}

# create_exclusive FILE LINE: true only for the process that creates FILE. On a full disk LINE may be missing.
create_exclusive() {
  set -C
  if { true >"$1"; } 2>/dev/null; then
    set +C
    { printf '%s\n' "$2" >"$1"; } 2>/dev/null # zsh's echo reads a single `-` as an option
    return 0
  fi
  set +C
  return 1
}

# find_obstacle: sets why to what keeps a run's files from being made: `full`, or `unwritable` with the host's words.
find_obstacle() {
  why=$(LC_ALL=C mkdir "$base/runs/.probe-$name" 2>&1) && rmdir "$base/runs/.probe-$name"
  case $why in
  '' | *' space '* | *[Qq]uota*) why=full ;;
  *) why="unwritable ${why##*: }" ;;
  esac
}

main() {
  if [ $((2147483647 + 1)) -lt 0 ]; then # mksh has 32-bit arithmetic
    # If /bin/sh has too, the exec below would loop for ever.
    case $1 in serve)
      case $(/bin/sh -c 'echo $((2147483647 + 1))') in
      -*) lack 'dash, bash, ksh, zsh or busybox sh as /bin/sh: the one here counts to 2 GiB alone, as mksh does' ;;
      esac
      ;;
    esac
    exec /bin/sh "$agent" "$@"
  fi
  "$@"
}
