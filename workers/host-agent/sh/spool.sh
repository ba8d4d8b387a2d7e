# Part of agent.sh: the supervisor of an attempt, which spools both streams and records the end.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
#
# Of each stream S (o, e), which are copied independently:
#   dd_S, copy_S    PID of its dd; PID:START of the dd of a killed supervisor, which must end before dd_S starts
#   at_S, count_S   the offset of its segment, and the most reads of it
#   over_S, drops_S set at its end; set while its dd drops what it reads
# The supervisor wakes for a line on descriptor 3: of a dd that ends, `s HANDLE ID` (the child has claimed the attempt),
# `c` (the child has ended), `x` (look whether a dd was killed).

# begin_spool: a segment is at most an eighth of the spool, and at most `ulimit -f`, which does not limit the command's
# pipe.
begin_spool() {
  handle='' pending='' spool=ok lines=0 ends=0 block=65536 most=$((limit / 524288))
  if [ "$file_limit" -gt 0 ]; then
    if [ $block -gt "$file_limit" ]; then block=$file_limit; fi
    if [ $most -gt $((file_limit / block)) ]; then most=$((file_limit / block)); fi
  fi
  if [ $most -lt 1 ]; then most=1; fi
  count=512
  if [ $count -gt $most ]; then count=$most; fi
  dd_o='' at_o=0 count_o=$count over_o='' copy_o='' dd_e='' at_e=0 count_e=$count over_e='' copy_e=''
}

# start_dd STREAM: once the disk is full, the rest is read and dropped.
start_dd() {
  eval "at=\$at_$1 count=\$count_$1 drops_$1=''"
  segment=$dir/$1.$((BASE + at)) reads=count=$count
  if [ $spool = full ]; then
    segment=/dev/null reads=bs=$block
    eval "drops_$1=y"
  fi
  if [ "$1" = o ]; then
    LC_ALL=C dd bs=$block $reads of="$segment" <&8 >/dev/null 2>&3 3>&- 8<&- 9<&- &
  else
    LC_ALL=C dd bs=$block $reads of="$segment" <&9 >/dev/null 2>&3 3>&- 8<&- 9<&- &
  fi
  eval "dd_$1=$!"
}

# end_dd STREAM: the dd of this stream has ended. Each read has a byte at least, so fewer bytes than reads mean the end
# of the stream.
end_dd() {
  eval "pid=\$dd_$1 at=\$at_$1 count=\$count_$1 drops=\$drops_$1 dd_$1=''"
  wait "$pid"
  result=$? segment=$dir/$1.$((BASE + at)) made=y
  if [ -n "$drops" ] && [ $result -eq 0 ]; then
    ends=$((ends + 1))
    eval "over_$1=y"
    return
  fi
  measure_segment || made=''
  if [ -z "$made" ] && is_removed; then
    spool=full pending="$pending $1" # nobody can read the run any more
    return
  fi
  # A dd that made no segment has printed no line.
  if [ $result -le 128 ] && [ -n "$made" ]; then ends=$((ends + 1)); fi
  at=$((at + bytes))
  eval "at_$1=$at"
  if [ $result -gt 128 ]; then
    true >"$dir/cut.$1.$at" # it may have held bytes that it had read
  elif [ $result -ne 0 ] && { [ -n "$made" ] || cannot_make_segment; }; then
    spool=full
    (exec >/dev/null 2>&1 3>&- 8<&- 9<&- && kill_tree) &
  elif [ $result -eq 0 ] && [ $bytes -lt "$count" ]; then
    eval "over_$1=y"
    return
  elif [ $result -eq 0 ]; then
    # About 8 MiB a segment: small segments cost forks, large ones are deleted late.
    count=$((8388608 * count / bytes))
    if [ $count -lt 16 ]; then count=16; fi
    if [ $count -gt 1024 ]; then count=1024; fi
    if [ $count -gt $most ]; then count=$most; fi
    eval "count_$1=$count"
  fi
  pending="$pending $1"
}

# measure_segment: sets bytes, the size of $segment, once the home is there; false if there is no such file.
measure_segment() {
  outage=0
  until bytes=0 && [ -e "$segment" ] && { [ ! -s "$segment" ] || bytes=$(wc -c <"$segment"); } && [ -e "$segment" ]; do
    if { [ -d "$dir/." ] && [ ! -e "$segment" ] && [ -d "$dir/." ]; } || is_removed; then return 1; fi
    await_home
  done
}

# cannot_make_segment: whether the disk is full for a new file. Otherwise the home was unreachable when a dd was to make its
# segment, or the dd did not start; it has read nothing. Not by the segment itself, which a reader would open.
cannot_make_segment() {
  if { true >"$dir/probe"; } 2>/dev/null; then
    rm -f "$dir/probe"
    sleep_fraction 1
    return 1
  fi
  [ -d "$dir/." ]
}

# has_room: whether both streams' spool is below $limit. Without room the supervisor pauses, which blocks the command.
has_room() {
  find_segments o
  spooled=$((at_o - oldest))
  find_segments e
  [ $((spooled + at_e - oldest)) -lt "$limit" ]
}

# end_dds: handles the dds that have ended. A dd prints its line just before it ends, so this waits for that dd, but not
# for ever: after a takeover a line may belong to no dd of this supervisor.
end_dds() {
  looks=0
  while :; do
    if [ -n "$dd_o" ] && ! read_process "$dd_o"; then end_dd o; fi
    if [ -n "$dd_e" ] && ! read_process "$dd_e"; then end_dd e; fi
    if [ -n "$copy_o" ] && ! is_alive "${copy_o%:*}" "${copy_o#*:}"; then end_copy o; fi
    if [ -n "$copy_e" ] && ! is_alive "${copy_e%:*}" "${copy_e#*:}"; then end_copy e; fi
    if [ $lines -le $ends ] || [ -z "$dd_o$dd_e$copy_o$copy_e" ]; then return; fi
    looks=$((looks + 1))
    if [ $looks -gt 200 ]; then ends=$lines; fi
    sleep 0.005 || sleep 1
  done
}

# drain_notes: reads what the fifo on descriptor 3 holds now, up to a point of its own. GNU dd writes a line and its end
# apart, so that the point may come in between.
drain_notes() {
  echo . >&3
  while read -r line <&3; do
    case $line in
    *.) break ;;
    *'records out') lines=$((lines + 1)) ;;
    esac
  done
}

# spool_streams: copies both streams to their ends; false if the child ended without claiming its attempt.
spool_streams() {
  until [ -n "$over_o" ] && [ -n "$over_e" ]; do
    if [ -n "$pending" ] && { [ $spool = full ] || has_room; }; then
      set -- $pending
      pending=''
      for stream in "$@"; do start_dd "$stream"; done
    fi
    if [ -n "$pending" ]; then
      sleep_fraction 1
      if is_removed; then spool=full; fi # nobody can read the run any more, nor make room
      drain_notes # a full fifo would block who writes to it
    else
      read -r line <&3 || exit 1
      case $line in
      *'records out') lines=$((lines + 1)) ;;
      s\ *)
        line=${line#s }
        handle=${line%% *} pending='o e'
        continue
        ;;
      c) if [ -z "$dd_o$dd_e$over_o$over_e$copy_o$copy_e" ]; then return 1; fi ;;
      x) ;;
      *) continue ;;
      esac
    fi
    end_dds
  done
}

# spool_attempt: the supervisor that the waiter starts.
spool_attempt() {
  begin_spool
  if spool_streams; then
    record_end
  elif ! rm -rf "$dir" 2>/dev/null; then
    sleep_fraction 1
    rm -rf "$dir" # the waiter wrote to it meanwhile, which it does once
  fi
}

# find_exit: sets code, the exit status of the command; false if the waiter has not recorded it.
find_exit() {
  set -- "$dir"/exit.*
  code=${1##*/exit.}
  [ "$code" != '*' ]
}

# find_cut STREAM TOTAL: sets sure, the offset up to which the stream is complete, and cut if later bytes may be
# missing. That holds even if none came later: a killed dd may have held the last ones.
find_cut() {
  sure=$2
  for look in first second; do # because the home may leave before the first one
    await_directory
    for file in "$dir/cut.$1".*; do
      file=${file##*.}
      if [ "$file" = '*' ]; then continue; fi
      cut=.cut
      if [ "$file" -lt "$sure" ]; then sure=$file; fi
    done
  done
}

# is_removed: whether the attempt's directory was removed, and is not merely unreachable with the home. Linux tells from an
# open file that it was removed, without asking the disk.
is_removed() {
  if { read -r self _ </proc/self/stat; } 2>/dev/null; then
    case $(readlink "/proc/$self/fd/3") in *' (deleted)') ;; *) return 1 ;; esac
  elif [ ! -d "$base/runs/." ]; then
    return 1
  fi
  [ ! -d "$dir" ]
}

# await_home: waits a second for a home that is unreachable; ends this process after an hour in all.
await_home() {
  outage=$((outage + 1))
  if [ $outage -gt 3600 ]; then exit 1; fi
  sleep 1
}

# await_directory: waits until that of the attempt can be listed, or was removed.
await_directory() {
  outage=0
  until is_listed || is_removed; do await_home; done
}

# has_started: whether this attempt created its run's fence, as far as its files can be read.
has_started() {
  outage=0
  while :; do
    id='' token='' fenced=''
    { read -r id <"$dir/claim" && read -r token fenced <"$base/started/$id"; } 2>/dev/null
    if [ -n "$fenced" ]; then
      [ "$fenced" = "$attempt" ]
      return
    fi
    if [ "$id" = - ] || is_removed; then return 1; fi
    if [ -d "$dir/." ] && [ ! -s "$dir/claim" ] && [ -d "$dir/." ]; then return 1; fi
    fence=$base/started/$id
    if [ -n "$id" ] && [ -d "$base/started/." ] && [ ! -s "$fence" ] && [ -d "$base/started/." ]; then return 1; fi
    await_home
  done
}

# record_end: records the end of the run once both streams have ended; as unsure if the waiter or a dd was killed, so
# that the status or some output is unknown.
record_end() {
  pid=0 its_start=''
  if ! has_started; then
    rm -rf "$dir"
    exit
  fi
  await_directory
  if ! find_exit && await_directory && ! find_exit; then # because the home may leave before the first look
    code=-
    { read -r pid its_start <"$dir/child"; } 2>/dev/null
    while is_alive "$pid" "$its_start"; do
      sleep 1
      drain_notes # a full fifo would block who writes to it
    done
  fi
  if [ $spool = full ]; then code=full; fi
  cut=''
  find_cut o "$at_o"
  sure_o=$sure
  find_cut e "$at_e"
  end=end.$code.$at_o.$at_e
  if [ "$code" = - ] || [ -n "$cut" ]; then end=unsure.$code.$at_o.$at_e.$sure_o.$sure$cut; fi
  # The record is a file name, because a rename works on a full disk and a new file may not.
  until { true >"$dir/$end"; } 2>/dev/null || mv "$dir/spare" "$dir/$end" || is_removed; do
    await_home
  done
  if [ -n "$handle" ] && find_end; then notify_emitter "done $handle $code $out $err"; fi
}

# find_segments STREAM: sets oldest and newest, the offsets of its first and last spool segments.
find_segments() {
  set -- "$dir/$1".1*
  oldest=${1##*.}
  eval "newest=\${$#}"
  newest=${newest##*.}
  case $oldest in *[!0-9]*) oldest=$BASE newest=$BASE ;; esac
  oldest=$((oldest - BASE)) newest=$((newest - BASE))
}

# notify_emitter LINE: sends it to the emitter of the serve that prepared this attempt. A fifo opened for both
# directions neither blocks nor kills its writer. A dead serve's directory is renamed before its removal, so no file is
# created there.
notify_emitter() { if [ -p "$fifo" ]; then echo "$1" 1<>"$fifo"; fi; } 2>/dev/null
