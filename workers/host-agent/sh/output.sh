# Part of agent.sh: the emitter's sending, of a followed run's output as far as its follower and the link take it.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
#
# Everything goes over one channel: behind what lies in its buffers each line waits, of whatever run, and each answer.
# The client allows so many bytes of output in all that about a second's worth is on its way; passed counts them.

# copy FILE SKIP LENGTH
copy() {
  if [ -z "$dd_bytes" ]; then
    dd_bytes=n
    if dd if=/dev/null bs=65536 iflag=skip_bytes,count_bytes,fullblock count=1 2>/dev/null; then dd_bytes=y; fi
  fi
  if [ $dd_bytes = y ]; then
    dd if="$1" bs=65536 iflag=skip_bytes,count_bytes,fullblock skip="$2" count="$3" 2>/dev/null
  else
    tail -c "+$(($2 + 1))" "$1" | head -c "$3"
  fi
}

# send STREAM: frames from offset $at up to $upto, at most $room bytes, and moves both; $total is empty while the run
# lives. Finished segments go out by one cat. False where the bytes are gone.
send() {
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
      if [ "$stop" -le $((at + length)) ] || [ $((stop - at)) -gt "$room" ]; then break; fi
      whole="$whole \"\$dir/\$stream.${1##*.}\"" length=$((stop - at))
      shift
    done
    if [ -n "$whole" ]; then
      echo "data $h $stream $at $length"
      eval "cat $whole" || exit 1
    else
      stop=$upto
      if [ $# -gt 1 ]; then stop=$((${2##*.} - BASE)); fi
      length=$((stop - at))
      if [ $length -gt "$room" ]; then length=$room; fi
      echo "data $h $stream $at $length"
      copy "$1" $((at - from)) $length || exit 1
    fi
    at=$((at + length)) room=$((room - length)) passed=$((passed + length))
  done
}

# push H [MOST]: sends what its window allows and the link takes, of that at most MOST; says how the run ended once all of
# it is sent. A run of which little is unacknowledged need not wait for the link: what prints a line now and then is heard
# beside those that fill it.
push() {
  h=$1
  eval "dir=\$dir_$h state=\$st_$h so=\$so_$h se=\$se_$h ko=\$ko_$h ke=\$ke_$h to=\$to_$h te=\$te_$h"
  eval "open=\$((so + se - ao_$h - ae_$h))"
  room=$((allowed - passed)) more=''
  if [ $# -gt 1 ] && [ $room -gt "$2" ]; then room=$2; fi
  if [ $room -lt $((FREE - open)) ]; then room=$((FREE - open)); fi
  if [ $room -le 0 ]; then case "$hungry " in *" $h "*) return ;; esac fi
  if [ $room -ge $((WINDOW - open)) ]; then room=$((WINDOW - open)) more=never; fi
  for side in o e; do
    eval "at=\$s$side known=\$k$side total=\$t$side"
    if [ -n "$total" ]; then upto=$total; else
      span $side
      upto=$known
      if [ $newest -gt "$upto" ]; then upto=$newest; fi
    fi
    if ! send $side; then
      echo "lost $h"
      leave "$h"
      return
    fi
    eval "s$side=\$at s${side}_$h=\$at"
    if [ "$at" -lt "$upto" ]; then more=${more:-y}; fi
  done
  if [ "$more" = y ]; then
    case "$hungry " in *" $h "*) ;; *) hungry="$hungry $h" ;; esac
  fi
  if [ "$state" = e ] && { [ "$so" -gt "$to" ] || [ "$se" -gt "$te" ]; }; then
    echo "lost $h" # its follower has seen more than is known here
    leave "$h"
  elif [ "$state" = e ] && [ "$so" -eq "$to" ] && [ "$se" -eq "$te" ]; then
    eval "echo \"ended $h \$co_$h $to $te\""
    leave "$h"
  fi
}

# share TOTAL PIECE: TOTAL bytes are allowed by now. The runs that wait for the link send in turn, alike and at least PIECE
# each; whoever has more waits behind the others.
share() {
  allowed=$1 piece=$2
  while [ -n "$hungry" ] && [ "$passed" -lt "$allowed" ]; do
    set -- $hungry
    hungry='' part=$(((allowed - passed) / $#))
    if [ $part -lt "$piece" ]; then part=$piece; fi
    while [ $# -gt 0 ] && [ "$passed" -lt "$allowed" ]; do
      if is_live "$1"; then push "$1" $part; fi
      shift
    done
    hungry="${*:+ $*}$hungry"
  done
}
