# shellcheck shell=sh
# Reads "+PID" for each started process and "-PID" for each ended one. The input ends when the
# supervisor has died: the processes that still run have 2 s to end, then KILL ends their groups.

trap '' HUP INT QUIT TERM

# The start time of a process: a later process with the same pid has another one. Empty if unknown.
read_start() {
  start=
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
  # shellcheck disable=SC2086
  set -- ${stat##*)}
  start=${20}
}

known=
while read -r line; do
  pid=${line#?} kept=
  for one in $known; do
    [ "${one%:*}" = "$pid" ] || kept="$kept $one"
  done
  known=$kept
  case $line in
    +*)
      read_start "$pid"
      known="$known $pid:$start"
      ;;
  esac
done

round=0
while [ $round -lt 20 ]; do
  alive=
  for one in $known; do kill -0 "${one%:*}" 2>/dev/null && alive=yes; done
  [ -z "$alive" ] && break
  sleep 0.1
  round=$((round + 1))
done
for one in $known; do
  pid=${one%:*}
  read_start "$pid"
  # Also for the group of a leader that has ended, but not for another process with its pid.
  if [ -z "$start" ] || [ "$start" = "${one#*:}" ]; then
    kill -KILL "-$pid" 2>/dev/null
  fi
done
exit 0
