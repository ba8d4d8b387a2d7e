# Part of agent.sh: the heartbeat of runs, for the other nodes of a shared home, and the causes of lost runs.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# start_heartbeat NAME DIRECTORY: starts the heartbeat process for the runs of that serve, unless one is alive or
# starting: its PID is not yet recorded. After two ticks it never will be: one more is started, and on a full disk, which
# looks the same, no third. A second one would do no harm.
start_heartbeat() {
  if ! create_exclusive "$2/heartbeat" y; then
    pid='' its_start=''
    { read -r pid its_start <"$2/heartbeat"; } 2>/dev/null
    if [ -n "$its_start" ]; then
      if is_alive "$pid" "$its_start"; then return 0; fi
    elif ! [ "$2/stamp.a" -nt "$2/heartbeat" ] || ! [ "$2/stamp.b" -nt "$2/heartbeat" ]; then
      return 0
    elif ! create_exclusive "$2/heartbeat.again" y; then
      return 0
    fi
  fi
  detach "$interp" $flag "$agent" heartbeat "$1" "$limit" "$file_limit" $tool $forking "$interp" $flag \
    </dev/null >/dev/null 2>&1 7>&- 9>&- || rm -f "$2/heartbeat"
}

# heartbeat NAME LIMIT FILE_LIMIT TOOL FORKING SHELL FLAG: touches the supervisor's file of each live run of that serve
# every 10 s, for other nodes, and replaces killed supervisors, until two looks find no run (decision 19). It touches
# the agent file too: a successor starts from it, and another version's sweep would remove it.
heartbeat() {
  name=$1 limit=$2 file_limit=$3 tool=$4 forking=$5 interp=$6 flag=$7 beat=0 outage=0 idle=''
  exec 3<"$agent" # tells is_removed
  identify_host
  if read_process $$; then echo "$$ $start" >"$base/serve/$name/heartbeat"; fi
  if [ -s "$base/serve/$name/heartbeat" ]; then rm -f "$base/serve/$name/heartbeat.again"; fi
  while :; do
    set --
    for dir in "$base/runs/$name"-*; do
      if [ ! -e "$dir/claim" ] || find_end; then continue; fi
      pid=0 its_start=''
      { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null
      if is_alive "$pid" "$its_start" || has_waiter; then
        set -- "$@" "$dir/supervisor"
        attempt=${dir##*/}
        keep_supervised
      fi
    done
    dir=$base/runs
    if [ $# -gt 0 ]; then
      outage=0 idle=''
      if [ $((beat % 5)) -eq 0 ]; then touch -c "$@" "$agent"; fi
      beat=$((beat + 1))
    elif [ ! -d "$dir/." ]; then
      if is_removed; then break; fi
      await_home
      continue
    elif [ -n "$idle" ]; then
      break
    else
      idle=y
    fi
    sleep 2
  done
  rm -f "$base/serve/$name/heartbeat"
}

# find_lost_cause: sets cause of a run that find_run_state found lost: `reboot`, `session_killed` (its serve, in another
# session, is dead too), or `-`.
find_lost_cause() {
  cause=-
  [ -n "$its_boot" ] || return 0
  if [ "$its_boot" != "$boot" ]; then
    cause=reboot
    return 0
  fi
  pid=0 its_start=''
  { read -r pid its_start <"$dir/child"; } 2>/dev/null
  if is_alive "$pid" "$its_start"; then return 0; fi
  set -- "${attempt#*-}"
  set -- "${1%-*}"
  if is_alive "${1%-*}" "${1#*-}"; then return 0; fi
  cause=session_killed
}

# watch_remote_run H: checks the run in $dir, on another node: without a heartbeat for 120 checks, a minute at least, it
# is lost (decision 19). Network drives cache file times, so the spool is measured by opening its segments.
watch_remote_run() {
  eval "missed=\$missed_$1"
  if [ -z "$missed" ] || [ "$dir/supervisor" -nt "$serve_dir/seen.$1" ]; then
    true >"$serve_dir/seen.$1"
    missed=0
  fi
  missed=$((missed + 1))
  eval "missed_$1=\$missed"
  if [ $missed -gt 120 ]; then
    echo "lost $1 no_heartbeat"
    end_follow "$1"
    return
  fi
  seen=$before before=none
  measure_spool "$1"
  before=$seen
}
