# shellcheck shell=sh
# Keeps one command of the embedded Postgres, or clears away what an earlier one left.
#
#   keep DIRECTORY COMMAND …   runs the command and prints its pid; descriptor 3 comes from the
#       supervisor: a line asks the command to stop, its end (the supervisor is gone) makes it stop
#   clear DIRECTORY            stops what runs on this directory, in the order a database wants it
#
# It runs as the same user as Postgres, who alone may look at its processes everywhere, and in the
# data directory itself: a later start finds it there and waits until it is done.

# shellcheck disable=SC2086,SC2046,SC3013 # pids are split on purpose; -ef is in every sh that we met

mode=$1 directory=$2
shift 2

# The pids of processes on the directory: of Postgres, or of keepers. Forks for keepers alone.
list() {
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" = $$ ] && continue
    read -r name 2>/dev/null <"$process/comm" || continue
    case $1:$name in
      postgres:postgres | postgres:initdb) [ "$process/cwd" -ef "$directory" ] && echo "$pid" ;;
      keepers:sh | keepers:*ash | keepers:busybox)
        # A shell of an operator may stand here as well.
        [ "$process/cwd" -ef "$directory" ] &&
          tr '\0' '\n' 2>/dev/null <"$process/cmdline" | grep -qx windlass-postgres-keeper && echo "$pid"
        ;;
    esac
  done
}

# Without /proc only the postmaster is known.
list_all() {
  if [ -d /proc/self ]; then
    list "$1"
  elif [ "$1" = postgres ] && postmaster; then
    case $(ps -o command= -p "$head" 2>/dev/null) in *postgres*"$directory"*) echo "$head" ;; esac
  fi
}

postmaster() {
  head=
  read -r head 2>/dev/null <"$directory/postmaster.pid"
  [ -n "$head" ]
}

includes() {
  wanted=$1
  shift
  for one; do [ "$one" = "$wanted" ] && return; done
  return 1
}

clear_directory() {
  round=0
  while :; do
    found=$(list_all postgres)
    if [ -z "$found" ]; then
      left=$(list_all keepers)
      [ -z "$left" ] && break
      # A keeper whose command is gone ends at once, if it is not frozen.
      [ $round -ge 30 ] && kill -KILL $left 2>/dev/null
    elif postmaster && includes "$head" $found; then
      case $round in
        0) kill -INT "$head" ;;
        60) kill -QUIT "$head" ;;
        9?) kill -KILL $found ;;
      esac 2>/dev/null
    elif [ $round -ge 3 ]; then
      # Backends without a postmaster: nothing that they still do can be committed.
      kill -KILL $found 2>/dev/null
    fi
    [ $round -ge 100 ] && return 1
    round=$((round + 1))
    sleep 0.1
  done
  # Postgres takes a living process of this user for its own, though the pid was only used again.
  if [ -d /proc/self ] && postmaster && kill -0 "$head" 2>/dev/null; then
    rm -f "$directory/postmaster.pid"
  fi
  return 0
}

# Also when dead and not yet buried: without its keeper that is init's to do, and may take it long.
is_gone() {
  kill -0 "$1" 2>/dev/null || return 0
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  case ${stat##*) } in Z*) return 0 ;; esac
  return 1
}

# Fast (clients are cut off), then immediate (recovery at the next start), then by force.
stop_child() {
  for step in INT QUIT KILL; do
    kill -$step "$child" 2>/dev/null || return
    round=0
    while [ $round -lt 40 ]; do
      sleep 0.1
      is_gone "$child" && return
      round=$((round + 1))
    done
  done
}

if [ "$mode" = clear ]; then
  clear_directory
  exit
fi

trap '' HUP INT QUIT
"$@" </dev/null 1>&2 3<&- &
child=$!
trap 'kill -INT $child' TERM
echo $child
exec 1>&2
(
  trap '' TERM
  while read -r _; do kill -INT "$child" 2>/dev/null; done
  stop_child
  # The keeper ends this watcher as soon as the command is gone, if it is not frozen.
  kill -0 $$ 2>/dev/null && sleep 1 && kill -KILL $$
) <&3 &
watcher=$!
exec 3<&-
# A signal ends the waiting too: only a child that is gone ends this.
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
# Killed itself, it leaves backends that a running query keeps from noticing.
[ $code -ge 128 ] && kill -KILL $(list_all postgres) 2>/dev/null
kill -KILL "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit $code
