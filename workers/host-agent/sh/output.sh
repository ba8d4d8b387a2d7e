# Part of agent.sh: flow control by a window for each run and a credit for the link (decision 24).
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
#
# The client grants credit for about one second of output. sent counts the bytes against that credit.

# copy_range FILE SKIP LENGTH
copy_range() {
  if [ -z "$dd_bytes" ]; then
    dd_bytes=n
    if dd if=/dev/null bs=65536 iflag=skip_bytes,count_bytes,fullblock count=1 2>/dev/null; then dd_bytes=y; fi
  fi
  if [ $dd_bytes = y ]; then
    dd if="$1" bs=65536 iflag=skip_bytes,count_bytes,fullblock skip="$2" count="$3" 2>/dev/null
  else
    # Opened here, because of the two statuses only head's is known.
    { tail -c "+$(($2 + 1))" | head -c "$3"; } <"$1"
  fi
}

# has_bytes FILE: whether it is not empty. A network drive caches the size until the file is opened.
has_bytes() { [ -s "$1" ] || { { true <"$1"; } 2>/dev/null && [ -s "$1" ]; }; }

# send_stream STREAM: sends frames from offset $at up to $upto, at most $room bytes, and updates both; $total is empty
# while the run is alive. One cat sends all complete segments. False if the bytes are gone.
send_stream() {
  stream=$1
  set -- "$dir/$stream".1*
  while [ "$at" -lt "$upto" ] && [ "$room" -gt 0 ]; do
    while [ $# -gt 1 ] && [ $((${2##*.} - BASE)) -le "$at" ]; do shift; done
    case ${1##*.} in '' | *[!0-9]*) return 1 ;; esac
    from=$((${1##*.} - BASE))
    [ $from -le "$at" ] || return 1
    whole='' length=0
    while [ $# -gt 0 ] && [ $((${1##*.} - BASE)) -eq $((at + length)) ]; do
      if [ $# -gt 1 ]; then stop=$((${2##*.} - BASE)); else stop=${total:-0}; fi
      if [ "$stop" -le $((at + length)) ] || [ $((stop - at)) -gt "$room" ] || ! has_bytes "$1"; then break; fi
      whole="$whole \"\$dir/\$stream.${1##*.}\"" length=$((stop - at))
      shift
    done
    if [ -n "$whole" ]; then
      echo "data $h $stream $at $length"
      eval "cat $whole" || exit 1
    else
      has_bytes "$1" || return 1
      stop=$upto
      if [ $# -gt 1 ]; then stop=$((${2##*.} - BASE)); fi
      length=$((stop - at))
      if [ $length -gt "$room" ]; then length=$room; fi
      echo "data $h $stream $at $length"
      copy_range "$1" $((at - from)) $length || exit 1
    fi
    at=$((at + length)) room=$((room - length)) sent=$((sent + length))
  done
}

# lacks FILE: whether its directory can be listed and has no such name.
lacks() {
  names=$(ls -a "${1%/*}") || return 1
  case $nl$names$nl in *"$nl${1##*/}$nl"*) return 1 ;; esac
}

# require_listing: aborts the serve while the home is unreachable: nothing of it is lost. False if this run's files were
# removed, and do not come back within a second.
require_listing() {
  tries=0
  until is_listed; do
    if [ ! -d "$base/runs/." ]; then abort_serve; fi
    if [ $tries -ge 20 ]; then
      # Of this home, not of a directory that stands in for it.
      require_fences
      if ! lacks "$dir" && ! lacks "$dir/supervisor"; then abort_serve; fi
      require_fences
      return 1
    fi
    tries=$((tries + 1))
    sleep_fraction 05
  done
}

# looks_again: after a look that missed output: whether to look once more. If not, what is missing is lost.
looks_again() { require_listing && [ -z "$looked" ] && looked=y; }

# send_output H [MOST]: sends what the run's window and the credit allow, at most MOST bytes, and at last the run's end.
# A run with less than FREE unacknowledged bytes needs no credit, so that runs that fill the link do not delay short
# lines.
send_output() {
  h=$1
  eval "dir=\$dir_$h state=\$st_$h so=\$so_$h se=\$se_$h ko=\$ko_$h ke=\$ke_$h to=\$to_$h te=\$te_$h"
  eval "in_flight=\$((so + se - ao_$h - ae_$h))"
  room=$((credit - sent)) more=''
  if [ $# -gt 1 ] && [ $room -gt "$2" ]; then room=$2; fi
  if [ $room -lt $((FREE - in_flight)) ]; then room=$((FREE - in_flight)); fi
  if [ $room -le 0 ]; then case "$blocked " in *" $h "*) return ;; esac fi
  if [ $room -ge $((WINDOW - in_flight)) ]; then room=$((WINDOW - in_flight)) more=never; fi
  for side in o e; do
    eval "at=\$s$side known=\$k$side total=\$t$side"
    if [ -n "$total" ]; then upto=$total; else
      find_segments $side
      upto=$known
      if [ $newest -gt "$upto" ]; then upto=$newest; fi
    fi
    looked=''
    until send_stream $side; do
      if looks_again; then continue; fi
      echo "lost $h"
      end_follow "$h"
      return
    done
    eval "s$side=\$at s${side}_$h=\$at"
    if [ "$at" -lt "$upto" ]; then more=${more:-y}; fi
  done
  if [ "$more" = y ]; then
    case "$blocked " in *" $h "*) ;; *) blocked="$blocked $h" ;; esac
  fi
  if [ "$state" = e ] && { [ "$so" -gt "$to" ] || [ "$se" -gt "$te" ]; }; then
    echo "lost $h" # its follower has more than is spooled here
    end_follow "$h"
  elif [ "$state" = e ] && [ "$so" -eq "$to" ] && [ "$se" -eq "$te" ]; then
    eval "echo \"ended $h \$co_$h $to $te\""
    end_follow "$h"
  fi
}

# share_credit TOTAL LEAST: TOTAL bytes are allowed by now. Divides the credit round-robin among the blocked runs, in
# equal shares of at least LEAST bytes.
share_credit() {
  credit=$1 least=$2
  while [ -n "$blocked" ] && [ "$sent" -lt "$credit" ]; do
    set -- $blocked
    blocked='' share=$(((credit - sent) / $#))
    if [ $share -lt "$least" ]; then share=$least; fi
    while [ $# -gt 0 ] && [ "$sent" -lt "$credit" ]; do
      if is_followed "$1"; then send_output "$1" $share; fi
      shift
    done
    blocked="${*:+ $*}$blocked"
  done
}
