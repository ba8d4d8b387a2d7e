# Part of agent.sh: signs of life, for the other nodes of a shared home, and what is known of runs that give none.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# start_heart NAME DIRECTORY: for the runs of that serve, unless its directory says that it has one, which lives or has
# yet to say its number.
start_heart() {
  if ! create "$2/heart" y; then
    pid='' its_start=''
    { read -r pid its_start <"$2/heart"; } 2>/dev/null
    if [ -z "$its_start" ] || is_alive "$pid" "$its_start"; then return 0; fi
  fi
  detach "$interp" $flag "$agent" heart "$1" </dev/null >/dev/null 2>&1 7>&- 9>&-
}

# heart NAME: touches the minder's file of each live run of that serve, so that another node of this home can tell that
# it lives (watch_far). It outlives its serve as the runs do, and ends with the last of them.
heart() {
  name=$1 beat=0
  identify
  if start_of $$; then echo "$$ $start" >"$base/serve/$name/heart"; fi
  while :; do
    set --
    for dir in "$base/runs/$name"-*; do
      if [ ! -e "$dir/claim" ] || find_end; then continue; fi
      pid=0 its_start=''
      { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null
      if is_alive "$pid" "$its_start"; then set -- "$@" "$dir/minder"; fi
    done
    if [ $# -eq 0 ]; then break; fi
    if [ $((beat % 5)) -eq 0 ]; then touch -c "$@"; fi
    beat=$((beat + 1))
    sleep 2
  done
  rm -f "$base/serve/$name/heart"
}

# find_cause: of what judge found lost: `reboot`; `all` where neither it nor the serve that it belonged to is left, though
# both were detached from each other; else `-`.
find_cause() {
  cause=-
  [ -n "$its_boot" ] || return 0
  if [ "$its_boot" != "$boot" ]; then
    cause=reboot
    return 0
  fi
  pid=0 its_start=''
  { read -r pid its_start <"$dir/body"; } 2>/dev/null
  if is_alive "$pid" "$its_start"; then return 0; fi
  set -- "${dn#*-}"
  set -- "${1%-*}"
  if is_alive "${1%-*}" "${1#*-}"; then return 0; fi
  cause=all
}

# watch_far H: a run in $dir on another node of this home. There a heart touches the minder's file every 10 s; here one is
# touched at each sign of that, by the clock of the same file system. What shows none for 120 looks, a minute at least,
# is lost. Attributes may be cached: what is written there is measured by opening it, never by its time.
watch_far() {
  eval "far=\$far_$1"
  if [ -z "$far" ] || [ "$dir/minder" -nt "$mine/far.$1" ]; then
    true >"$mine/far.$1"
    far=0
  fi
  far=$((far + 1))
  eval "far_$1=\$far"
  if [ $far -gt 120 ]; then
    echo "lost $1 far"
    leave "$1"
    return
  fi
  seen=$before before=none
  measure "$1"
  before=$seen
}
