#!/bin/sh
# The host agent: starts commands that run exactly once, outlive their client, and spool what they print
# until the client has stored it. Any of sh, dash, bash, ksh, zsh and busybox sh reads this file.
#
#   started/ID              the fence, "TOKEN DIR": whoever creates it may start the run, nobody else ever
#   runs/DIR/               one attempt: go, body, minder, ready (made ahead), claim, cmd, o.* and e.* (spool), end.*
#   serve/NAME/             one live serve: fifo (lines to its emitter), ticks, born, stamp.*
#
# NAME is BOOT-PID-START of the serve and DIR is NAME-NUMBER, so each says whose it is and whether that one lives.
# A segment of the spool is named by BASE + the offset of its first byte: of one width, so that names sort,
# and never with a leading zero, which arithmetic would take for octal.
#
# Forks cost milliseconds: between a request and its command there is none, and at the end one where it printed.
# shellcheck disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
# Words are split on purpose wherever a variable stands unquoted, numbered variables are read and set by eval,
# and every shell named above has -nt.

if [ -n "${ZSH_VERSION:-}" ]; then emulate sh; fi
# Before any name is used here, what the account exports under it.
case $1 in serve) environment=$(export -p) ;; esac
set +Cefuvx # as BASH_ENV or SHELLOPTS may have set them
agent=$0
base=$HOME/.windlass
BASE=1000000000000000
WINDOW=4194304
PREPARED=2
nl='
'

# --- processes -------------------------------------------------------------------------------------------------

identify() {
  { IFS= read -r node </proc/sys/kernel/hostname; } 2>/dev/null || node=$(uname -n)
  { IFS= read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null ||
    boot=$(sysctl -n kern.boottime 2>/dev/null | tr -cd '[:digit:]')
  boot=${boot:--}
  boot8=${boot%%-*}
  boot8=${boot8:-none}
}

# start_of PID: sets start, which with PID names a process for good on this boot; false if there is none.
start_of() {
  if [ -r /proc/self/stat ]; then
    { IFS= read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${stat##*") "}
    case $1 in [ZX]) return 1 ;; esac
    session=$4 start=${20}
  else
    start=$(ps -o lstart= -p "$1" 2>/dev/null | tr -cd '[:alnum:]')
    [ -n "$start" ]
  fi
}

is_alive() { start_of "$1" && [ "$start" = "$2" ]; }

# A child of `&` would ignore SIGINT and SIGQUIT for ever, and so would the commands below it. The first setsid
# makes a group leader, so the second forks and its parent ends at once: detached, with no `&`.
detach() {
  case $tool in
  setsid) setsid setsid "$@" ;;
  perl) perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec @ARGV' "$@" ;;
  *) python3 -c 'import os,sys,signal
if os.fork(): os._exit(0)
signal.signal(signal.SIGPIPE,signal.SIG_DFL); os.setsid(); os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
  esac
}

# lead COMMAND…: the same process, as the leader of a session of its own.
lead() {
  case $tool in
  setsid) setsid "$@" ;;
  perl) perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@" ;;
  *) python3 -c 'import os,sys,signal
signal.signal(signal.SIGPIPE,signal.SIG_DFL); os.setsid(); os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
  esac
}

choose_tool() {
  for tool in setsid perl python3; do
    if command -v $tool >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

# doze TENTHS: where sleep takes no fractions a whole second passes.
doze() { sleep "0.$1" 2>/dev/null || sleep 1; }

# --- runs ------------------------------------------------------------------------------------------------------

# find_end: of $dir; sets code, out, err.
find_end() {
  set -- "$dir"/end.*
  set -- "${1##*/end.}"
  code=${1%%.*} out=${1#*.}
  err=${out#*.} out=${out%.*}
  [ "$code" != '*' ]
}

# judge ID: sets verdict (absent, stopped, running, ended, lost, wrong_node), and token, dn, dir of its attempt.
judge() {
  verdict=absent fence=$base/started/$1 tries=0
  [ -e "$fence" ] || return 0
  # The fence is created and then written: empty for longer than a moment means that its maker died between.
  until token='' dn='' && { read -r token dn <"$fence"; } 2>/dev/null && [ -n "$dn" ]; do
    [ -e "$fence" ] || return 0
    dir=$base/runs/- verdict=lost
    [ $tries -lt 4 ] || return 0
    tries=$((tries + 1)) verdict=absent
    doze 05
  done
  dir=$base/runs/$dn
  if [ "$token" = -stopped ]; then
    verdict=stopped
    return 0
  fi
  if find_end; then
    verdict=ended
    return 0
  fi
  verdict=lost
  { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null || return 0
  if [ "$where" != "$node" ]; then
    verdict=wrong_node
  elif [ "$its_boot" = "$boot" ] && is_alive "$pid" "$its_start"; then
    verdict=running
  elif find_end; then # it ended between the first look and its death
    verdict=ended
  fi
}

# create FILE LINE: true only for the one that creates it; LINE may be missing on a full disk.
create() {
  set -C
  if { true >"$1"; } 2>/dev/null; then
    set +C
    { echo "$2" >"$1"; } 2>/dev/null
    return 0
  fi
  set +C
  return 1
}

# find_victims: the live processes of the run in $dir, as PID:START words: those whose environment carries its mark,
# wherever they went, and those of its session, whatever they did to their environment. Its minder and pumps are neither.
find_victims() {
  victims=''
  leader=0 leader_start=0
  { read -r leader leader_start <"$dir/body"; } 2>/dev/null
  # Another process that bears the leader's number now proves that the session is gone.
  if start_of "$leader" && [ "$start" != "$leader_start" ]; then leader=0; fi
  for file in $(grep -lsF "WINDLASS_RUN=$dir" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    pid=${pid%/environ}
    if start_of "$pid"; then victims="$victims $pid:$start"; fi
  done
  [ "$leader" -gt 0 ] || return 0
  for file in /proc/[0-9]*; do
    pid=${file#/proc/}
    case " $victims" in *" $pid:"*) continue ;; esac
    if start_of "$pid" && [ "$session" = "$leader" ]; then victims="$victims $pid:$start"; fi
  done
}

# halt: ends every process of the run in $dir: TERM, after a second KILL, until none is left; at most 5 s. Sets how.
halt() {
  how=mark tenths=0 termed=' '
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
    if [ $tenths -ge 50 ]; then
      how=left
      return 0
    fi
    for victim in $victims; do
      pid=${victim%:*}
      is_alive "$pid" "${victim#*:}" || continue
      if [ $tenths -ge 10 ]; then
        kill -KILL "$pid"
      else
        case $termed in *" $victim "*) ;; *) kill -TERM "$pid" ;; esac
        termed="$termed$victim "
      fi
    done
    if sleep 0.1; then tenths=$((tenths + 1)); else
      sleep 1
      tenths=$((tenths + 10))
    fi
  done
}

# --- the attempt: minder, pumps and body -----------------------------------------------------------------------

# span STREAM: sets oldest, the offset where what is left of its spool begins, and newest, where its last segment does.
span() {
  set -- "$dir/$1".1*
  oldest=${1##*.}
  eval "newest=\${$#}"
  newest=${newest##*.}
  case $oldest in *[!0-9]*) oldest=$BASE newest=$BASE ;; esac
  oldest=$((oldest - BASE)) newest=$((newest - BASE))
}

# pump STREAM: standard input into segments; says "STREAM BYTES ok|full|dead" on 3. Waits, and so makes the command
# wait, while both streams' spool is over $limit. The first dd stands ready before there is a command.
pump() {
  stream=$1 at=0 count=128 most=$((limit / 524288))
  if [ $most -lt 1 ]; then most=1; fi
  other=o
  if [ "$stream" = o ]; then other=e; fi
  while :; do
    if [ $count -gt $most ]; then count=$most; fi
    segment=$dir/$stream.$((BASE + at))
    stats=$(LC_ALL=C dd bs=65536 count=$count of="$segment" 2>&1 3>&- 4>&- 5>&-)
    result=$?
    records=0 bytes=''
    if [ $result -eq 0 ]; then
      # GNU dd warns of short reads, which a pipe is made of.
      while case $stats in dd:*) ;; *) false ;; esac do stats=${stats#*"$nl"}; done
      set -- $stats
      records=$((${1%+*} + ${1#*+}))
      case $8 in byte* | '('*) bytes=$7 ;; esac
    fi
    if [ -z "$bytes" ]; then bytes=$(($(wc -c <"$segment"))); fi
    at=$((at + bytes))
    if [ $result -gt 128 ]; then
      # Someone killed it, perhaps with bytes in hand: what was printed is not known whole.
      echo "$stream $at dead" >&3
      return
    elif [ $result -ne 0 ]; then
      echo "$stream $at full" >&3
      (exec >/dev/null 2>&1 3>&- && halt) &
      cat >/dev/null 3>&-
      return
    fi
    [ "$records" -ge $count ] || break
    # About 1 MiB a segment: small ones cost forks, large ones are deleted late.
    count=$((1048576 * records / (bytes + 1)))
    if [ $count -lt 16 ]; then count=16; fi
    if [ $count -gt 1024 ]; then count=1024; fi
    while
      span $other
      spooled=$((newest - oldest))
      span "$stream"
      [ $((spooled + at - oldest)) -ge "$limit" ]
    do doze 1; done
  done
  echo "$stream $at ok" >&3
}

# tell LINE: to the emitter of the serve that prepared this attempt, if it lives. Open for both ways a fifo neither
# blocks nor kills its writer; the directory of a dead serve is renamed first, so nothing is created in its place.
tell() { if [ -p "$fifo" ]; then echo "$1" 1<>"$fifo"; fi; } 2>/dev/null

# minder NAME NUMBER UMASK LIMIT TOOL SHELL FLAG: prepares an attempt, waits for its command to be given and to end.
# Its session is its own and the command's is another's: what a command does to its own group (`kill 0`) ends there.
minder() {
  dn=$1-$2 mask=$3 limit=$4 tool=$5
  shift 5
  dir=$base/runs/$dn fifo=$base/serve/${dn%-*}/fifo
  identify
  mkdir "$dir" || exit 1
  start_of $$
  if ! { mkfifo "$dir/go" && true >"$dir/spare" && echo "$node $boot $$ $start" >"$dir/minder"; }; then
    rm -rf "$dir"
    exit 1
  fi
  said=$(
    {
      {
        {
          lead "$@" "$agent" body "$dn" "$mask" </dev/null >/dev/null 2>&1 3>&3 4>&4 5>&5
          echo "c $?" >&3
        } 5>&1 >/dev/null | (exec >/dev/null 4>&- && pump e)
      } 4>&1 | (exec >/dev/null && pump o)
    } 3>&1
  )
  handle='' id=- code='' out='' err='' spool=ok
  set -- $said
  while [ $# -gt 0 ]; do
    case $1 in
    s) handle=$2 id=$3 && shift 3 ;;
    c) code=$2 && shift 2 ;;
    o) out=$2 && if [ "$3" != ok ]; then spool=$3; fi && shift 3 ;;
    e) err=$2 && if [ "$3" != ok ]; then spool=$3; fi && shift 3 ;;
    *) exit 1 ;;
    esac
  done
  token='' fenced=''
  { read -r token fenced <"$base/started/$id"; } 2>/dev/null
  if [ "$fenced" != "$dn" ]; then # nothing was started here
    rm -rf "$dir"
    exit
  fi
  # Without all three the end is not known: with no record the run counts as lost.
  if [ -z "$code" ] || [ -z "$out" ] || [ -z "$err" ] || [ $spool = dead ]; then exit 1; fi
  if [ "$code" -gt 256 ]; then code=$((code - 128)); fi # ksh counts signals from 256
  if [ $spool = full ]; then code=full; fi
  # The record is a name: on a full disk a rename needs no room where a new file might.
  if ! { true >"$dir/end.$code.$out.$err"; } 2>/dev/null; then mv "$dir/spare" "$dir/end.$code.$out.$err"; fi
  tell "done $handle $code $out $err"
}

# body DIR UMASK: waits for "HANDLE ID TOKEN MODE", claims its attempt, takes the fence and becomes the command.
body() {
  dn=$1 dir=$base/runs/$1 fifo=$base/serve/${1%-*}/fifo
  exec 0<>"$dir/go"
  start_of $$
  echo "$$ $start" >"$dir/body"
  # Whoever retires a serve renames its directory and then kills the bodies on record: one of us sees the other.
  if [ ! -d "${fifo%/*}" ] || [ ! -s "$dir/body" ]; then exit 1; fi
  environment=$(cat "${fifo%/*}/environment")
  if [ -z "$environment" ]; then exit 1; fi
  true >"$dir/ready"
  read -r handle id token mode || exit 1
  create "$dir/claim" "$id" || exit 1
  echo "s $handle $id" >&3
  # shellcheck source=/dev/null
  . "$dir/cmd"
  if [ "$mode" = s ] && ! printf '%s' "$text" >"$dir/script"; then
    tell "failed $handle full"
    exit 1
  fi
  if ! create "$base/started/$id" "$token $dn"; then
    tell "taken $handle"
    exit
  fi
  if [ ! -s "$base/started/$id" ]; then
    rm -f "$base/started/$id"
    tell "failed $handle full"
    exit 1
  fi
  tell "started $handle"
  umask "$2"
  # The account's own variables come back, those too whose names were used here; what is still needed is $1 to $4.
  set -- "$dir" "$mode" "$text" "$environment"
  eval "$4"
  export WINDLASS_RUN="$1"
  unset OLDPWD
  case ${KSH_VERSION-} in
  '') unset SHLVL ;;
  *) typeset +x SHLVL _AST_FEATURES ;; # an `exec` of ksh crashes where there is no SHLVL
  esac
  if [ "$2" = s ]; then exec /bin/sh "$1/script" </dev/null >&4 2>&5 3>&- 4>&- 5>&-; fi
  # Debian's bash would read .bashrc again for each command of an SSH session.
  case ${SHELL:=/bin/sh} in
  */bash) exec "$SHELL" --norc -c "$3" </dev/null >&4 2>&5 3>&- 4>&- 5>&- ;;
  *) exec "$SHELL" -c "$3" </dev/null >&4 2>&5 3>&- 4>&- 5>&- ;;
  esac
}

# --- the emitter: the one writer to the client -----------------------------------------------------------------
#
# Of each followed run H it keeps, in variables that end in _H: id, dir, tok, st (w waiting, r running, e ended),
# own (prepared by this serve), so and se (sent), ao and ae (acknowledged), ko and ke (known to be spooled),
# and once ended co (code), to and te (totals).

# begin H ID DIR STATE OWN TOKEN OUT ERR
begin() {
  eval "id_$1=\$2 dir_$1=\$3 st_$1=\$4 own_$1=\$5 tok_$1=\$6 so_$1=\$7 ao_$1=\$7 ko_$1=\$7 se_$1=\$8 ae_$1=\$8 ke_$1=\$8"
  live="$live $1"
  ask_tick
}

leave() {
  rest=''
  for i in $live; do
    if [ "$i" != "$1" ]; then rest="$rest $i"; fi
  done
  live=$rest
  unset "id_$1" "dir_$1" "st_$1" "own_$1" "tok_$1" "so_$1" "ao_$1" "ko_$1" "se_$1" "ae_$1" "ke_$1" "co_$1" "to_$1" "te_$1"
}

is_live() { case "$live " in *" $1 "*) ;; *) return 1 ;; esac }

# The ticker sleeps and then says `t`; one tick at most is asked for and not yet heard.
ask_tick() {
  if [ -z "$asked" ]; then
    asked=y
    echo t >&7
  fi
}

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
    at=$((at + length)) room=$((room - length))
  done
}

# push H: sends what the window allows; says how the run ended once all of it is sent.
push() {
  h=$1
  eval "dir=\$dir_$h state=\$st_$h so=\$so_$h se=\$se_$h ko=\$ko_$h ke=\$ke_$h to=\$to_$h te=\$te_$h"
  eval "room=\$((WINDOW + ao_$h + ae_$h - so - se))"
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
  done
  if [ "$state" = e ] && { [ "$so" -gt "$to" ] || [ "$se" -gt "$te" ]; }; then
    echo "lost $h" # its follower has seen more than is known here
    leave "$h"
  elif [ "$state" = e ] && [ "$so" -eq "$to" ] && [ "$se" -eq "$te" ]; then
    eval "echo \"ended $h \$co_$h $to $te\""
    leave "$h"
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

# conclude H: looks whether it ended without our being told, or was lost.
conclude() {
  eval "id=\$id_$1 state=\$st_$1"
  judge "$id"
  case $verdict in
  ended) finish "$1" "$code" "$out" "$err" ;;
  absent)
    # Prepared here and not started: only as long as its minder lives will it be.
    if [ "$state" = w ]; then
      eval "dir=\$dir_$1"
      { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null && is_alive "$pid" "$its_start" && return
    fi
    echo "failed $1 died"
    leave "$1"
    ;;
  lost | wrong_node)
    echo "$verdict $1 $where"
    leave "$1"
    ;;
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
  running)
    echo "running $1"
    begin "$1" "$2" "$dir" r '' '' "$3" "$4"
    # What an earlier tick's stamp would call unchanged was never measured for this follower.
    before=none
    measure "$1"
    push "$1"
    ;;
  ended)
    if is_whole; then
      begin "$1" "$2" "$dir" e '' '' "$3" "$4"
      finish "$1" "$code" "$out" "$err"
    else
      echo "lost $1"
    fi
    ;;
  *) echo "$verdict $1 $where" ;;
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
  live='' asked='' stamp=a before=b ticks=0 dd_bytes='' where=''
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
    run) begin "$2" "$3" "$base/runs/$5" w y "$4" 0 0 ;;
    follow) follow "$2" "$3" "$4" "$5" ;;
    *) if is_live "$2"; then
      case $1 in
      started) eval "st_$2=r" && echo "running $2" ;;
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

# A ticker without an emitter ends the serve: nobody is left to answer.
tick() {
  while read -r line; do
    doze 05
    echo t 1<>"$mine/fifo"
  done
  kill -TERM $$
}

# --- what is left over -----------------------------------------------------------------------------------------

# is_serving NAME: whether that serve may live. Of another node nothing can be known; another boot of this one has ended.
is_serving() {
  where=''
  { read -r where <"$base/serve/$1/born"; } 2>/dev/null
  case $1 in
  "$boot8"-*) if [ -n "$where" ] && [ "$where" != "$node" ]; then return 0; fi ;;
  *)
    [ "$where" != "$node" ]
    return
    ;;
  esac
  set -- "${1#*-}"
  is_alive "${1%-*}" "${1#*-}"
}

# retire NAME: ends what a dead or ending serve kept prepared. A claim decides between it and a body that was just told
# to start: what is claimed here never starts, what its body claimed lives on.
retire() {
  mv "$base/serve/$1" "$base/serve/.$1"
  for dir in "$base/runs/$1"-*; do
    [ -d "$dir" ] || continue
    if create "$dir/claim" -; then
      pid=0 its_start=''
      { read -r pid its_start <"$dir/body"; } 2>/dev/null
      case $1 in "$boot8"-*) if is_alive "$pid" "$its_start"; then kill -TERM "$pid"; fi ;; esac
      rm -rf "$dir"
    elif find_end && { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null; then
      # All it has left to do is to tell the emitter that is gone; a full fifo would hold it for ever.
      if [ "$its_boot" = "$boot" ] && is_alive "$pid" "$its_start"; then kill -TERM "$pid"; fi
    fi
  done
  rm -rf "$base/serve/.$1"
}

# A fence outlives its run's directory until every serve that was alive when it was forgotten has ended, this one
# included: each could still have an old `run` of it in its pipes. A serve born later is spoken to by clients that
# know of the end. Forgetting touches the fence, so the two times compare.
sweep() {
  set --
  for dir in "$base"/serve/*; do
    [ -d "$dir" ] || continue
    if is_serving "${dir##*/}"; then set -- "$@" "$dir/born"; else retire "${dir##*/}"; fi
  done
  for fence in "$base"/started/*; do
    token='' dn=''
    { read -r token dn <"$fence"; } 2>/dev/null
    if [ -z "$dn" ]; then continue; fi
    if [ "$token" = -stopped ] || [ -d "$base/runs/$dn" ]; then continue; fi
    for born in "$@"; do
      [ "$born" -nt "$fence" ] || continue 2
    done
    rm -f "$fence"
  done
}

# A run that ended a day ago and that nobody asked to forget.
sweep_old() {
  find "$base/runs" -name 'end.*' -mtime +0 2>/dev/null | while read -r file; do
    { read -r id <"${file%/*}/claim"; } 2>/dev/null && forget_run "$id"
  done
}

# --- requests --------------------------------------------------------------------------------------------------

say() { printf 'say %s\n' "$1" >&9; }

stop_run() {
  judge "$1"
  if [ $verdict = absent ]; then
    if create "$fence" '-stopped -'; then
      say "halted $1 never"
      return
    fi
    judge "$1"
  fi
  case $verdict in
  running | lost)
    halt
    say "halted $1 $how"
    ;;
  *) say "halted $1 $verdict" ;;
  esac
}

forget_run() {
  judge "$1"
  case $verdict in
  running | wrong_node) return 1 ;;
  absent) return 0 ;;
  esac
  # A fence that names no directory counts as forgotten.
  if [ -z "$dn" ] || [ "$dn" = - ]; then echo '-forgotten -' >"$fence"; fi
  touch -c "$fence"
  case $dn in '' | - | */*) ;; *) rm -rf "$base/runs/$dn" ;; esac
}

answer_forget() { if forget_run "$1"; then say "forgot $1"; else say "forgot $1 busy"; fi; }

list_runs() {
  for file in "$base"/started/*; do
    [ -e "$file" ] || continue
    judge "${file##*/}"
    say "item ${file##*/} $verdict"
  done
  say listed
}

probe_ffmpeg() {
  program=$(command -v ffmpeg) || program=''
  found=''
  case $program in
  /*)
    for word in $(ffmpeg -hide_banner -encoders 2>/dev/null </dev/null); do
      case $word in libx264 | libvpx-vp9 | libvpx | libopenh264) ;; *) continue ;; esac
      case $found, in *",$word,"*) ;; *) found="$found,$word" ;; esac
    done
    ;;
  *) program=- ;;
  esac
  found=${found#,}
  say "ffmpeg ${found:--} $program"
}

# prepare: makes one more attempt ready, to be waited for only when it is needed.
prepare() {
  made=$((made + 1))
  detach "$interp" $flag "$agent" minder "$name" $made "$mask" "$limit" $tool "$interp" $flag \
    </dev/null >/dev/null 2>&1 9>&-
}

# await_attempt: until the attempt of number $used is ready; false when it died or does not come.
await_attempt() {
  dir=$base/runs/$name-$used tries=0
  until [ -e "$dir/ready" ]; do
    tries=$((tries + 1))
    # On a full disk its directory does not last.
    if [ $tries -gt 1000 ] || { [ $tries -gt 100 ] && [ ! -d "$dir" ]; }; then return 1; fi
    sleep 0.005 || sleep 1
  done
  { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null && is_alive "$pid" "$its_start"
}

# start_run HANDLE ID TOKEN MODE QUOTED
start_run() {
  if [ -e "$base/started/$2" ]; then
    printf 'run %s %s %s -\ntaken %s\n' "$1" "$2" "$3" "$1" >&9
    return
  fi
  used=$((used + 1))
  while [ $made -lt $used ]; do prepare; done
  if ! await_attempt; then
    # What was prepared has died, on a full disk perhaps: one fresh attempt.
    used=$((made + 1))
    prepare
    if ! await_attempt; then
      why=full
      if echo "$1" >"$mine/probe" && [ -s "$mine/probe" ]; then why=unprepared; fi
      say "failed $1 $why"
      return
    fi
  fi
  if ! printf 'text=%s\n' "$5" >"$dir/cmd"; then
    say "failed $1 full"
    return
  fi
  # The emitter hears of the run before anything of the run can speak.
  echo "run $1 $2 $3 ${dir##*/}" >&9
  echo "$1 $2 $3 $4" 1<>"$dir/go"
  while [ $made -lt $((used + PREPARED)) ]; do prepare; done
}

refuse() {
  echo "windlass-agent 1 refused $1"
  exit 1
}

end_serve() {
  trap '' TERM HUP PIPE
  retire "$name"
  kill -TERM $emitter
  exec 9>&-
  wait
  sweep
  exit 0
}

# serve LIMIT SHELL [FLAG]: answers the requests of one client, line by line, until its standard input ends.
serve() {
  limit=$1 interp=$2 flag=$3
  exec 2>/dev/null
  mask=$(umask)
  umask 077
  unset BASH_ENV # read by the commands, not once more by each of their minders
  choose_tool || refuse 'needs setsid, perl or python3'
  identify
  start_of $$ || start=0
  name=$boot8-$$-$start
  mine=$base/serve/$name
  why=$(mkdir -p "$base/runs" "$base/started" "$mine" 2>&1) || refuse "cannot write: $why"
  # On a full disk these stay empty: no run can start then, but those there are can be stored and forgotten.
  echo "$node" >"$mine/born"
  printf '%s\n' "$environment" >"$mine/environment"
  cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || cores=1
  set -f
  available=0
  for word in $(LC_ALL=C df -Pk "$base"); do
    case $word in [0-9]*%) break ;; esac
    available=$word
  done
  set +f
  echo "windlass-agent 1 $node $boot $cores $((available * 1024)) $HOME"
  if [ $((available * 512)) -lt "$limit" ]; then limit=$((available * 512)); fi
  if [ "$limit" -lt 1048576 ]; then limit=1048576; fi
  mkfifo "$mine/fifo" "$mine/ticks" || exit 1
  exec 9<>"$mine/fifo"
  # In a subshell of its own: a redirected function would keep the old descriptors, saved, and so keep them open.
  (exec <"$mine/fifo" 7>"$mine/ticks" 9>&- && emit) &
  emitter=$!
  (exec <"$mine/ticks" >/dev/null 9>&- && tick) &
  trap end_serve TERM HUP PIPE
  made=1000000 used=1000000
  while [ $made -lt $((used + PREPARED)) ]; do prepare; done
  (exec >/dev/null 9>&- && sweep && sweep_old) &
  while IFS=' ' read -r verb first second third fourth rest; do
    case $verb in
    run) start_run "$first" "$second" "$third" "$fourth" "$rest" ;;
    follow | ack | unfollow) echo "$verb $first $second $third $fourth" >&9 ;;
    stop) (exec >/dev/null && stop_run "$first") & ;;
    forget) (exec >/dev/null && answer_forget "$first") & ;;
    list) (exec >/dev/null && list_runs) & ;;
    ffmpeg) (exec >/dev/null && probe_ffmpeg) & ;;
    ping) say pong ;;
    esac
  done
  end_serve
}

main() {
  if [ $((2147483647 + 1)) -lt 0 ]; then exec /bin/sh "$agent" "$@"; fi # mksh counts to 2 GiB
  "$@"
}

# The last line: a file cut short does nothing.
main "$@"
