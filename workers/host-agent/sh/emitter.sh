# Part of agent.sh: the emitter, the one writer to the client.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
#
# Of each followed run H it keeps, in variables that end in _H: id, dir, tok, st (w waiting, r running, e ended),
# own (prepared by this serve), so and se (sent), ao and ae (acknowledged), ko and ke (known to be spooled),
# and once ended co (code), to and te (totals). Of one that runs on another node also far, looks since a sign of life.

# begin H ID DIR STATE OWN TOKEN OUT ERR
begin() {
  eval "id_$1=\$2 dir_$1=\$3 st_$1=\$4 own_$1=\$5 tok_$1=\$6 so_$1=\$7 ao_$1=\$7 ko_$1=\$7 se_$1=\$8 ae_$1=\$8 ke_$1=\$8 far_$1=''"
  live="$live $1"
  ask_tick
}

leave() {
  rest=''
  for i in $live; do
    if [ "$i" != "$1" ]; then rest="$rest $i"; fi
  done
  live=$rest
  unset "id_$1" "dir_$1" "st_$1" "own_$1" "tok_$1" "so_$1" "ao_$1" "ko_$1" "se_$1" "ae_$1" "ke_$1" "co_$1" "to_$1" "te_$1" "far_$1"
}

is_live() { case "$live " in *" $1 "*) ;; *) return 1 ;; esac }

# The ticker sleeps and then says `t`; one tick at most is asked for and not yet heard.
ask_tick() {
  if [ -z "$asked" ]; then
    asked=y
    echo t >&7
  fi
}

# measure H: looks for what came since the last tick. A segment not written since before that tick's stamp was measured
# whole then; an equal time counts as written, so that coarse clocks cost a fork and never a byte.
measure() {
  eval "dir=\$dir_$1"
  for side in o e; do
    span $side
    segment=$dir/$side.$((BASE + newest))
    if [ -s "$segment" ] && ! [ "$mine/stamp.$before" -nt "$segment" ]; then
      size=$(($(wc -c <"$segment")))
      eval "k${side}_$1=\$((newest + size))"
    fi
  done
}

# is_stillborn: whether run $id, prepared in $dir and absent, will never start: its minder is dead and either the claim was
# taken from its body for good, or the body that has it is dead too and took no fence before.
is_stillborn() {
  { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null && is_alive "$pid" "$its_start" && return 1
  if create "$dir/claim" -; then return 0; fi
  claimed=''
  { read -r claimed <"$dir/claim"; } 2>/dev/null
  if [ "$claimed" = - ]; then return 0; fi
  { read -r pid its_start <"$dir/body"; } 2>/dev/null && is_alive "$pid" "$its_start" && return 1
  judge "$id"
  [ $verdict = absent ]
}

# conclude H: looks whether it ended without our being told, or was lost.
conclude() {
  eval "id=\$id_$1 state=\$st_$1 prepared=\$dir_$1"
  judge "$id"
  # What became of another attempt's run is not to be told as if it were of this one.
  if [ "$state" = w ] && [ $verdict != absent ] && [ -n "$dn" ] && [ "$dir" != "$prepared" ]; then
    on_taken "$1"
    return
  fi
  case $verdict in
  ended) finish "$1" "$code" "$out" "$err" ;;
  absent)
    dir=$prepared
    if [ "$state" = r ]; then # it was there
      echo "lost $1"
    elif is_stillborn; then
      echo "failed $1 died"
    else
      return
    fi
    leave "$1"
    ;;
  lost)
    find_cause
    echo "lost $1 $cause"
    leave "$1"
    ;;
  wrong_node) watch_far "$1" ;;
  esac
}

# finish H CODE OUT ERR
finish() {
  eval "st_$1=e co_$1=\$2 to_$1=\$3 te_$1=\$4"
  push "$1"
}

on_tick() {
  asked='' before=$stamp ticks=$((ticks + 1))
  if [ $stamp = a ]; then stamp=b; else stamp=a; fi
  true >"$mine/stamp.$stamp"
  if [ $((ticks % 100)) -eq 0 ]; then start_heart "$name" "$mine"; fi
  for h in $live; do
    eval "state=\$st_$h own=\$own_$h dir=\$dir_$h"
    [ "$state" != e ] || continue
    ask_tick
    if [ $((ticks % 10)) -eq 0 ] || { [ -z "$own" ] && find_end; }; then
      conclude "$h"
      is_live "$h" || continue
    fi
    if [ "$state" = r ]; then
      measure "$h"
      push "$h"
    fi
  done
}

# follow H ID OUT ERR
follow() {
  judge "$2"
  case $verdict in
  running | wrong_node)
    echo "running $1"
    if [ $verdict = running ]; then where=''; fi
    begin "$1" "$2" "$dir" r '' '' "$3" "$4"
    # What an earlier tick's stamp would call unchanged was never measured for this follower.
    before=none
    if [ -n "$where" ]; then watch_far "$1"; else measure "$1"; fi
    push "$1"
    ;;
  lost)
    find_cause
    echo "lost $1 $cause"
    ;;
  ended)
    if is_whole; then
      begin "$1" "$2" "$dir" e '' '' "$3" "$4"
      finish "$1" "$code" "$out" "$err"
    else
      echo "lost $1"
    fi
    ;;
  *) echo "$verdict $1" ;;
  esac
}

# is_whole: the spool of the ended run in $dir has the lengths that its names promise; a crash of the host can leave less.
is_whole() {
  for side in o e; do
    total=$out
    if [ $side = e ]; then total=$err; fi
    set -- "$dir/$side".1*
    [ -e "$1" ] || continue
    set -- $(cd "$dir" && wc -c $side.1*) # SIZE NAME pairs, and perhaps a total
    while [ $# -gt 1 ]; do
      case $2 in $side.*) ;; *) break ;; esac
      next=$total
      case $4 in $side.*) next=$((${4##*.} - BASE)) ;; esac
      [ $((${2##*.} - BASE + $1)) -eq "$next" ] || return 1
      shift 2
    done
  done
}

# on_taken H: another attempt was there first. One of the same token is a repeated request: its run is followed.
on_taken() {
  eval "id=\$id_$1 tok=\$tok_$1"
  leave "$1"
  judge "$id"
  if [ $verdict = stopped ]; then
    echo "stopped $1"
  elif [ $verdict = absent ]; then
    echo "failed $1 full"
  elif [ "$token" = "$tok" ] && [ -d "$dir" ]; then
    follow "$1" "$id" 0 0
  else
    echo "taken $1"
  fi
}

# drop H STREAM OFFSET: deletes the segments that end at or below it, but never the last.
drop() {
  eval "dir=\$dir_$1"
  stream=$2 offset=$3 old=''
  set -- "$dir/$stream".1*
  while [ $# -gt 1 ] && [ $((${2##*.} - BASE)) -le "$offset" ]; do
    old="$old \"\$dir/\$stream.${1##*.}\""
    shift
  done
  if [ -n "$old" ]; then eval "rm -f $old"; fi
}

emit() {
  live='' asked='' stamp=a before=b ticks=0 dd_bytes=''
  passed=0 allowed=$LINK hungry=''
  while IFS= read -r line; do
    case $line in
    say\ *)
      printf '%s\n' "${line#say }"
      continue
      ;;
    esac
    set -- $line
    case $1 in
    t) on_tick ;;
    credit) share "$2" "$3" ;;
    run) begin "$2" "$3" "$base/runs/$5" w y "$4" 0 0 ;;
    follow) follow "$2" "$3" "$4" "$5" ;;
    *) if is_live "$2"; then
      case $1 in
      started)
        eval "st_$2=r" && echo "running $2"
        # A tick between its first line and this one would call that unchanged for ever.
        before=none
        measure "$2"
        push "$2"
        ;;
      done) finish "$2" "$3" "$4" "$5" ;;
      taken) on_taken "$2" ;;
      failed)
        echo "$line"
        leave "$2"
        ;;
      unfollow) leave "$2" ;;
      ack)
        eval "ao_$2=\$3 ae_$2=\$4"
        drop "$2" o "$3"
        drop "$2" e "$4"
        push "$2"
        ;;
      esac
    fi ;;
    esac
  done
  # The fifo ends with the intake, its one lasting writer: killed, it has cleaned up nothing.
  if [ -d "$mine" ]; then
    retire "$name"
    sweep
  fi
}

# A ticker without an emitter ends the serve: nobody is left to answer. So does one that was retired from elsewhere.
tick() {
  while read -r line; do
    doze 05
    echo t 1<>"$mine/fifo" || break
  done
  kill -TERM $$
}
