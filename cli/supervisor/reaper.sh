# shellcheck shell=sh
# Reads "+PID" where a process was started and "-PID" where one has ended. When that input ends, the
# supervisor is gone: what was not gone by then is given 2 s, then it is killed with its group.

trap '' HUP INT QUIT TERM

# When a process started: tells it from a later one with the same pid. Empty where that is not known.
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
  # A leader that is gone may have left its group; another process with its pid is none of ours.
  if [ -z "$start" ] || [ "$start" = "${one#*:}" ]; then
    kill -KILL "-$pid" 2>/dev/null
  fi
done
exit 0
