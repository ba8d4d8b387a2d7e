# Part of agent.sh: ending all processes of a run.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# find_victims: the live processes of the run in $dir, as PID:START words: those found before; those whose environment
# carries its mark, wherever they went; those of its session, whatever they did to their environment; and what any of
# these started, which may have left both. Its minder and pumps are none of them. Who left both and whose parent has
# ended is not found: only a cgroup of the run's own would hold it, which an account without root cannot count on.
find_victims() {
  found=$victims victims='' others=''
  for victim in $found; do
    if is_alive "${victim%:*}" "${victim#*:}"; then victims="$victims $victim"; fi
  done
  leader=- leader_start=-
  { read -r leader leader_start <"$dir/body"; } 2>/dev/null
  # Another process that bears the leader's number now proves that the session is gone.
  if start_of "$leader" && [ "$start" != "$leader_start" ]; then leader=-; fi
  for file in $(grep -lsF "WINDLASS_RUN=$dir" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    pid=${pid%/environ}
    case "$victims" in *" $pid:"*) continue ;; esac
    if start_of "$pid"; then victims="$victims $pid:$start"; fi
  done
  if [ "$leader" = - ] && [ -z "$victims" ]; then return 0; fi
  for file in /proc/[0-9]*; do
    pid=${file#/proc/}
    case "$victims" in *" $pid:"*) continue ;; esac
    start_of "$pid" || continue
    if [ "$session" = "$leader" ]; then
      victims="$victims $pid:$start"
    elif [ "$parent" -gt 2 ]; then # neither init's nor the kernel's
      others="$others $parent:$pid:$start"
    fi
  done
  more=y
  while [ -n "$more" ]; do
    more=''
    for other in $others; do
      child=${other#*:}
      case "$victims" in
      *" ${child%:*}:"*) ;;
      *" ${other%%:*}:"*) victims="$victims $child" more=y ;;
      esac
    done
  done
}

# tell_time: sets now, in tenths of a second; false where the host does not say.
tell_time() {
  { IFS=' .' read -r now hundredths rest </proc/uptime; } 2>/dev/null && now=$((now * 10 + ${hundredths%?}))
}

# halt: ends every process of the run in $dir: TERM, after a second KILL, until none is left; after 50 looks, or 5 seconds
# more, it gives up. On a busy host a look takes long: those seconds are the clock's. Sets how.
halt() {
  how=mark tenths=0 termed=' ' kill_at='' killed='' victims=''
  if [ ! -r /proc/self/environ ]; then
    how=group
    { read -r pid its_start <"$dir/body"; } 2>/dev/null || return 0
    if is_alive "$pid" "$its_start"; then
      kill -TERM "-$pid"
      sleep 1
      kill -KILL "-$pid"
    fi
    return 0
  fi
  while find_victims && [ -n "$victims" ]; do
    if [ $tenths -ge 50 ] || { [ -n "$killed" ] && tell_time && [ "$now" -ge $((kill_at + 50)) ]; }; then
      how=left
      return 0
    fi
    late=''
    if [ $tenths -ge 10 ] || { [ -n "$kill_at" ] && tell_time && [ "$now" -ge "$kill_at" ]; }; then late=y; fi
    for victim in $victims; do
      pid=${victim%:*}
      is_alive "$pid" "${victim#*:}" || continue
      if [ -n "$late" ]; then
        killed=y
        kill -KILL "$pid"
      else
        case $termed in *" $victim "*) ;; *) kill -TERM "$pid" ;; esac
        termed="$termed$victim "
      fi
    done
    if [ -z "$kill_at" ] && tell_time; then kill_at=$((now + 10)); fi
    if sleep 0.1; then tenths=$((tenths + 1)); else
      sleep 1
      tenths=$((tenths + 10))
    fi
  done
}
