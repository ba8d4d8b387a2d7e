# shellcheck shell=sh
# Runs one command of the embedded Postgres, or stops the processes that an earlier start left.
#
#   run DIRECTORY COMMAND …    prints the command's pid; a line on descriptor 3 stops the command, the
#       end of that descriptor (the supervisor died) kills it
#   stop-orphans DIRECTORY     stops the postmaster on this directory first, then its backends
#
# Runs as the user of Postgres, since no other may inspect its processes on every system, and in the
# data directory, where a later start finds it.

# shellcheck disable=SC2086,SC2046,SC3013 # pids are split on purpose; every sh in use has -ef

mode=$1 directory=$2
shift 2

# The pids of processes on the directory: of Postgres, or of wrappers. Forks for wrappers alone.
list() {
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" = $$ ] && continue
    read -r name 2>/dev/null <"$process/comm" || continue
    case $1:$name in
      postgres:postgres | postgres:initdb) [ "$process/cwd" -ef "$directory" ] && echo "$pid" ;;
      wrappers:sh | wrappers:*ash | wrappers:busybox)
        # An operator's shell may have this working directory, too.
        [ "$process/cwd" -ef "$directory" ] &&
          tr '\0' '\n' 2>/dev/null <"$process/cmdline" | grep -qx windlass-postgres-wrapper && echo "$pid"
        ;;
    esac
  done
}

# Without /proc it finds only the postmaster.
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

stop_orphans() {
  round=0
  while :; do
    found=$(list_all postgres)
    if [ -z "$found" ]; then
      left=$(list_all wrappers)
      [ -z "$left" ] && break
      # A wrapper ends with its command, unless it is frozen.
      [ $round -ge 30 ] && kill -KILL $left 2>/dev/null
    elif postmaster && includes "$head" $found; then
      case $round in
        0) kill -INT "$head" ;;
        60) kill -QUIT "$head" ;;
        9?) kill -KILL $found ;;
      esac 2>/dev/null
    elif [ $round -ge 3 ]; then
      # Backends without a postmaster cannot commit any more.
      kill -KILL $found 2>/dev/null
    fi
    [ $round -ge 100 ] && return 1
    round=$((round + 1))
    sleep 0.1
  done
  # Postgres would take a later process of this user with the same pid for its postmaster.
  if [ -d /proc/self ] && postmaster && kill -0 "$head" 2>/dev/null; then
    rm -f "$directory/postmaster.pid"
  fi
  return 0
}

# True for a zombie as well: init may reap the child of a killed wrapper late.
is_gone() {
  kill -0 "$1" 2>/dev/null || return 0
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  case ${stat##*) } in Z*) return 0 ;; esac
  return 1
}

# Fast shutdown (disconnects clients), then immediate (recovery at the next start), then KILL.
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

if [ "$mode" = stop-orphans ]; then
  stop_orphans
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
  # The wrapper kills this watcher when the command has ended, unless it is frozen.
  kill -0 $$ 2>/dev/null && sleep 1 && kill -KILL $$
) <&3 &
watcher=$!
exec 3<&-
# A signal interrupts wait: the loop ends when the child has ended.
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
# A killed postmaster leaves backends that notice it only after their query.
[ $code -ge 128 ] && kill -KILL $(list_all postgres) 2>/dev/null
kill -KILL "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit $code
