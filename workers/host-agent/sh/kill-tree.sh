# Part of agent.sh: kills the process tree of a run.
# shellcheck shell=sh disable=SC2012,SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# holds_streams: whether a process of the run's session has a stream of the run in $dir open. Only the run has these. A
# session of which the account may read no descriptors, as of a program that it may execute only, counts as one that has.
holds_streams() {
  for pid in $(ls -ln /proc/[0-9]*/fd 2>/dev/null | LC_ALL=C awk -v run="${dir#"$base"}" '
    /^\/proc\// { pid = $0; gsub(/[^0-9]/, "", pid) }
    sub(/^.* -> /, "") && ($0 ~ /\/(out|err)$/) {
      end = run substr($0, length($0) - 3)
      if (length($0) >= length(end) && substr($0, length($0) - length(end) + 1) == end) print pid
    }'); do
    if read_process "$pid" && [ "$session" = "$leader" ]; then return 0; fi
  done
  unreadable=''
  for file in /proc/[0-9]*/fd; do
    pid=${file#/proc/}
    if ! read_process "${pid%/fd}" || [ "$session" != "$leader" ]; then continue; fi
    if [ -r "$file" ]; then return 1; fi
    unreadable=y
  done
  [ -n "$unreadable" ]
}

# find_run_processes: sets processes to the live ones of the run in $dir, as PID:START: those found before, those with
# its mark in their environment, those of its session, and all their descendants, without its supervisor and dds. It
# misses an orphan without mark and session: to find that takes a cgroup, and so root. is_own: the session is the run's.
find_run_processes() {
  found=$processes processes='' others=''
  for process in $found; do
    if is_alive "${process%:*}" "${process#*:}"; then processes="$processes $process"; fi
  done
  leader=- leader_start=-
  { read -r leader leader_start <"$dir/child"; } 2>/dev/null
  # A dead leader's PID may have led another session since. That one has no process with the mark or with a stream.
  if is_alive "$leader" "$leader_start"; then is_own=y; elif read_process "$leader"; then leader=- is_own=''; fi
  for file in $(grep -lsF "WINDLASS_RUN=$dir" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    pid=${pid%/environ}
    case "$processes" in *" $pid:"*) continue ;; esac
    read_process "$pid" || continue
    processes="$processes $pid:$start"
    if [ "$session" = "$leader" ]; then is_own=y; fi
  done
  if [ -z "$is_own" ] && holds_streams; then is_own=y; fi
  if [ -z "$is_own$processes" ]; then return 0; fi
  if [ -z "$is_own" ]; then leader=-; fi
  for file in /proc/[0-9]*; do
    pid=${file#/proc/}
    case "$processes" in *" $pid:"*) continue ;; esac
    read_process "$pid" || continue
    if [ "$session" = "$leader" ]; then
      processes="$processes $pid:$start"
    elif [ "$parent" -gt 2 ]; then # not a child of init or the kernel
      others="$others $parent:$pid:$start"
    fi
  done
  more=y
  while [ -n "$more" ]; do
    more=''
    for other in $others; do
      candidate=${other#*:}
      case "$processes" in
      *" ${candidate%:*}:"*) ;;
      *" ${other%%:*}:"*) processes="$processes $candidate" more=y ;;
      esac
    done
  done
}

# read_uptime: sets now, in tenths of a second; false without /proc/uptime.
read_uptime() {
  { IFS=' .' read -r now hundredths rest </proc/uptime; } 2>/dev/null && now=$((now * 10 + ${hundredths%?}))
}

# mark_stopped: records, if the stop was asked for, that the run in $dir did not end by itself: before the first signal,
# and only if there is a process to signal. On a full disk it renames `ready`, which is no longer used.
mark_stopped() {
  if [ -n "$signalled" ]; then return 0; fi
  signalled=y
  if [ -z "$is_asked_for" ]; then return 0; fi
  if ! { true >"$dir/stopped"; } 2>/dev/null; then mv "$dir/ready" "$dir/stopped"; fi
}

# kill_tree [asked]: sends SIGTERM to every process of the run in $dir, after a second SIGKILL, until none is left;
# gives up after 50 scans or 5 s more by the clock, because scans are slow on a busy host. Sets stop_result, and
# signalled unless nobody was there.
kill_tree() {
  is_asked_for=$1 signalled=''
  stop_result=killed tenths=0 termed=' ' kill_at='' killed='' processes='' is_own=''
  if [ ! -r /proc/self/environ ]; then
    stop_result=group_killed
    { read -r pid its_start <"$dir/child"; } 2>/dev/null || return 0
    if is_alive "$pid" "$its_start"; then
      mark_stopped
      kill -TERM "-$pid"
      sleep 1
      kill -KILL "-$pid"
    fi
    return 0
  fi
  while find_run_processes && [ -n "$processes" ]; do
    if [ $tenths -ge 50 ] || { [ -n "$killed" ] && read_uptime && [ "$now" -ge $((kill_at + 50)) ]; }; then
      stop_result=survivors
      return 0
    fi
    late=''
    if [ $tenths -ge 10 ] || { [ -n "$kill_at" ] && read_uptime && [ "$now" -ge "$kill_at" ]; }; then late=y; fi
    for process in $processes; do
      pid=${process%:*}
      is_alive "$pid" "${process#*:}" || continue
      mark_stopped
      if [ -n "$late" ]; then
        killed=y
        kill -KILL "$pid"
      else
        case $termed in *" $process "*) ;; *) kill -TERM "$pid" ;; esac
        termed="$termed$process "
      fi
    done
    if [ -z "$kill_at" ] && read_uptime; then kill_at=$((now + 10)); fi
    if sleep 0.1; then tenths=$((tenths + 1)); else
      sleep 1
      tenths=$((tenths + 10))
    fi
  done
}
