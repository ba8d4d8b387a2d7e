# Part of agent.sh: the emitter, the only process that writes to the client.
# shellcheck shell=sh disable=SC2013,SC2016,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044
#
# The state of each followed run H, in variables that end in _H:
#   id, dir, tok      the run, its attempt's directory, its token
#   st, own           w waiting, r running, e ended; whether this serve prepared it
#   so se, ao ae      bytes of stdout and stderr that were sent, and acknowledged
#   ko ke, to te, co  bytes known to be spooled; at the end the total bytes, and the exit status
#   missed            of a run on another node: checks since its last heartbeat

# begin_follow H ID DIR STATE OWN TOKEN OUT ERR
begin_follow() {
  eval "id_$1=\$2 dir_$1=\$3 st_$1=\$4 own_$1=\$5 tok_$1=\$6 so_$1=\$7 ao_$1=\$7 ko_$1=\$7 se_$1=\$8 ae_$1=\$8 ke_$1=\$8 missed_$1=''"
  followed="$followed $1"
  request_tick
}

end_follow() {
  rest=''
  for i in $followed; do
    if [ "$i" != "$1" ]; then rest="$rest $i"; fi
  done
  followed=$rest
  unset "id_$1" "dir_$1" "st_$1" "own_$1" "tok_$1" "so_$1" "ao_$1" "ko_$1" "se_$1" "ae_$1" "ke_$1" "co_$1" "to_$1" "te_$1" "missed_$1"
}

is_followed() { case "$followed " in *" $1 "*) ;; *) return 1 ;; esac }

# request_tick: the ticker sends `t` in 50 ms, or sooner for a spool that it watches. At most one tick is pending.
request_tick() {
  if [ -z "$tick_requested" ]; then
    tick_requested=y
    echo t >&7
  fi
}

# watch_spools: tells the ticker how much of each spool is known; of few runs, because each costs it a stat.
watch_spools() {
  set -- w
  for h in $followed; do
    eval "state=\$st_$h dir=\$dir_$h ko=\$ko_$h ke=\$ke_$h"
    if [ "$state" != r ]; then continue; fi
    for side in o e; do
      find_segments $side
      eval "size=\$((k$side - newest))"
      if [ "$size" -lt 0 ]; then size=0; fi
      set -- "$@" "${dir##*/}/$side.$((BASE + newest))" "$size"
    done
    if [ $# -gt 32 ]; then break; fi
  done
  echo "$*" >&7
}

# measure_spool H: finds how much output is spooled. A segment older than the last tick's stamp has not grown since. An
# equal time counts as newer: a coarse clock may cost a fork, but never a byte.
measure_spool() {
  eval "dir=\$dir_$1"
  for side in o e; do
    find_segments $side
    segment=$dir/$side.$((BASE + newest))
    if [ -s "$segment" ] && ! [ "$serve_dir/stamp.$before" -nt "$segment" ]; then
      size=$(($(wc -c <"$segment")))
      eval "k${side}_$1=\$((newest + size))"
    fi
  done
}

# can_never_start: whether the absent run $id, requested of the attempt in $dir, will never start: its supervisor is
# dead, and the attempt is claimed here, or its child claimed it and died before the fence.
can_never_start() {
  { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null && is_alive "$pid" "$its_start" && return 1
  if create_exclusive "$dir/claim" -; then return 0; fi
  claimed=''
  { read -r claimed <"$dir/claim"; } 2>/dev/null
  if [ "$claimed" = - ]; then return 0; fi
  { read -r pid its_start <"$dir/child"; } 2>/dev/null && is_alive "$pid" "$its_start" && return 1
  find_run_state "$id"
  [ $run_state = absent ]
}

# check_run H: looks whether the run has ended without a notification, or was lost.
check_run() {
  eval "id=\$id_$1 state=\$st_$1 prepared=\$dir_$1"
  find_run_state "$id"
  # The state is that of another attempt's run.
  if [ "$state" = w ] && [ $run_state != absent ] && [ -n "$attempt" ] && [ "$dir" != "$prepared" ]; then
    on_taken "$1"
    return
  fi
  case $run_state in
  running)
    keep_supervised
    # Its child could not tell, for the home was unreachable just then.
    if [ "$state" = w ]; then on_started "$1"; fi
    ;;
  ended) finish_run "$1" "$code" "$out" "$err" ;;
  absent)
    dir=$prepared
    if [ "$state" = r ]; then # its fence existed
      echo "lost $1"
    elif can_never_start; then
      echo "failed $1 died"
    else
      return
    fi
    end_follow "$1"
    ;;
  lost)
    find_lost_cause
    echo "lost $1 $cause"
    end_follow "$1"
    ;;
  wrong_node) watch_remote_run "$1" ;;
  esac
}

# keep_supervised: makes the supervisor of the run in $dir, attempt $attempt, check its dds; replaces a supervisor that
# was killed. After the command's end the waiter does that.
keep_supervised() {
  if ! find_heir; then return; fi
  if is_alive "$pid" "$its_start"; then
    # Where the fifo is gone already, this would make a file.
    [ ! -p "$dir/note" ] || { echo x 1<>"$dir/note"; } 2>/dev/null
  else
    detach "$interp" $flag "$agent" respool "$attempt" "$limit" "$file_limit" </dev/null >/dev/null 2>&1 7>&- 9>&-
  fi
}

# on_started H
on_started() {
  eval "state=\$st_$1"
  if [ "$state" != w ]; then return; fi # it was seen to run before it told
  eval "st_$1=r" && echo "running $1"
  # Measures every segment: the stamp of an earlier tick may be newer than the first output.
  before=none
  measure_spool "$1"
  send_output "$1"
  # Once between two ticks: who does not read yet must not be written to without limit.
  if [ "$watches$watched" = y ]; then
    watched=y
    watch_spools
  fi
}

# finish_run H CODE OUT ERR
finish_run() {
  eval "st_$1=e co_$1=\$2 to_$1=\$3 te_$1=\$4"
  send_output "$1"
}

on_tick() {
  tick_requested='' watched='' before=$stamp ticks=$((ticks + 1))
  if [ $stamp = a ]; then stamp=b; else stamp=a; fi
  true >"$serve_dir/stamp.$stamp"
  if [ $((ticks % 100)) -eq 0 ]; then start_heartbeat "$name" "$serve_dir"; fi
  for h in $followed; do
    eval "state=\$st_$h own=\$own_$h dir=\$dir_$h"
    [ "$state" != e ] || continue
    request_tick
    if [ $((ticks % 10)) -eq 0 ] || { [ -z "$own" ] && find_end; }; then
      check_run "$h"
      is_followed "$h" || continue
    fi
    if [ "$state" = r ]; then
      measure_spool "$h"
      send_output "$h"
    fi
  done
  if [ -n "$watches" ]; then watch_spools; fi
}

# follow H ID OUT ERR
follow() {
  find_run_state "$2"
  case $run_state in
  running | wrong_node)
    echo "running $1"
    if [ $run_state = running ]; then its_node=''; fi
    begin_follow "$1" "$2" "$dir" r '' '' "$3" "$4"
    # Measures every segment: those older than the last stamp were never measured for this follower.
    before=none
    if [ -n "$its_node" ]; then watch_remote_run "$1"; else measure_spool "$1"; fi
    send_output "$1"
    ;;
  lost)
    find_lost_cause
    echo "lost $1 $cause"
    ;;
  ended)
    looked=''
    until is_spool_complete; do
      if looks_again; then continue; fi
      echo "lost $1"
      return
    done
    begin_follow "$1" "$2" "$dir" e '' '' "$3" "$4"
    finish_run "$1" "$code" "$out" "$err"
    ;;
  *) echo "$run_state $1" ;;
  esac
}

# is_spool_complete: whether the spool of the ended run in $dir is as long as recorded; a host crash can cut it. Aborts
# the serve if a segment cannot be read.
is_spool_complete() {
  for side in o e; do
    total=$out
    if [ $side = e ]; then total=$err; fi
    set -- "$dir/$side".1*
    [ -e "$1" ] || continue
    if ! sizes=$(cd "$dir" && wc -c $side.1*); then
      require_listing || return 1
      sizes=$(cd "$dir" && wc -c $side.1*) || abort_serve
    fi
    set -- $sizes # SIZE NAME pairs, then perhaps a total
    while [ $# -gt 1 ]; do
      case $2 in $side.*) ;; *) break ;; esac
      next=$total
      case $4 in $side.*) next=$((${4##*.} - BASE)) ;; esac
      [ $((${2##*.} - BASE + $1)) -eq "$next" ] || return 1
      shift 2
    done
  done
}

# on_taken H: another attempt has created the fence. The same token means a repeated request: that run is followed.
on_taken() {
  eval "id=\$id_$1 tok=\$tok_$1"
  end_follow "$1"
  find_run_state "$id"
  if [ $run_state = stopped ]; then
    echo "stopped $1"
  elif [ $run_state = absent ]; then
    echo "failed $1 full"
  elif [ "$token" = "$tok" ] && [ -d "$dir" ]; then
    follow "$1" "$id" 0 0
  else
    echo "taken $1"
  fi
}

# delete_segments H STREAM OFFSET: deletes the segments that end at or below OFFSET, but never the last one.
delete_segments() {
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
  followed='' tick_requested='' watches='' watched='' stamp=a before=b ticks=0 dd_bytes=''
  sent=0 credit=$LINK blocked=''
  while IFS= read -r line; do
    case $line in
    answer\ *)
      printf '%s\n' "${line#answer }"
      continue
      ;;
    esac
    set -- $line
    case $1 in
    t) on_tick ;;
    watches) watches=y ;;
    credit) share_credit "$2" "$3" ;;
    end) exit ;;
    run) begin_follow "$2" "$3" "$base/runs/$5" w y "$4" 0 0 ;;
    follow) follow "$2" "$3" "$4" "$5" ;;
    *) if is_followed "$2"; then
      case $1 in
      started) on_started "$2" ;;
      done) finish_run "$2" "$3" "$4" "$5" ;;
      taken) on_taken "$2" ;;
      failed)
        echo "$line"
        end_follow "$2"
        ;;
      unfollow) end_follow "$2" ;;
      ack)
        eval "ao_$2=\$3 ae_$2=\$4"
        delete_segments "$2" o "$3"
        delete_segments "$2" e "$4"
        send_output "$2"
        ;;
      esac
    fi ;;
    esac
  done
  # The fifo ends when the process that reads requests has ended. If that was killed, it has cleaned up nothing.
  if [ -d "$serve_dir" ]; then clean_up_serve "$name"; fi
  sweep
}

# WATCH FIFO PID: the ticker in Perl, which checks every 5 ms whether a spool has grown, without forks. Output after a
# pause of 50 ms is reported at once; otherwise the tick comes after 50 ms, as without Perl.
WATCH='my ($fifo, $serve) = @ARGV;
my ($input, $steps, $quiet, %known) = ("", 0, 0);
for (;;) {
  vec(my $ready = "", 0, 1) = 1;
  my $count = select($ready, undef, undef, $steps ? 0.005 : undef);
  next if $count < 0;
  if ($count) {
    sysread(STDIN, $input, 65536, length $input) or last;
    while ($input =~ s/^(\w) ?(.*)\n//) {
      if ($1 eq "t") { $steps = 10 } else { %known = split / /, $2 }
    }
    next;
  }
  $steps--;
  next if $quiet++ < 10 && $steps;
  my $grown = grep { (-s $_ || 0) > $known{$_} } keys %known;
  next if $steps && !$grown;
  $quiet = 0 if $grown;
  $steps = 0;
  open(my $emitter, "+<", $fifo) or last;
  syswrite $emitter, "t\n";
}
while (getppid == $serve && kill "TERM", $serve) { select undef, undef, undef, 0.1 }'

# tick: the ticker. It ends the serve when the emitter is gone or another serve cleaned up. It repeats the signal,
# because a shell handles one that comes just before a read only after the read.
tick() {
  if [ "$(PERL5OPT='' perl -e 'print 1')" = 1 ] && cd "$base/runs"; then
    echo watches 1<>"$serve_dir/fifo"
    PERL5OPT='' exec perl -e "$WATCH" "$serve_dir/fifo" $$
  fi
  while read -r line; do
    sleep_fraction 05
    echo t 1<>"$serve_dir/fifo" || break
  done
  while kill -TERM $$; do sleep_fraction 1; done
}
