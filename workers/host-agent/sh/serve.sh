# Part of agent.sh: serves the requests of one client.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2153,SC2154,SC3013,SC3044

answer() { printf 'answer %s\n' "$1" >&9; }

# A request that is answered has a NUMBER, which its answer repeats.

# await_end ID: waits up to 5 s for the end record of a run that has only agent processes left. False without one: an
# unknown process holds its output open, or its supervisor is gone too.
await_end() {
  looks=0
  until find_end; do
    looks=$((looks + 1))
    if [ $looks -gt 100 ]; then return 1; fi
    if [ $((looks % 10)) -eq 0 ] && find_run_state "$1" && [ $run_state = lost ]; then return 1; fi
    sleep_fraction 05
  done
}

# stop_run NUMBER ID: if the stop found no process, the command had ended by itself and keeps that end.
stop_run() {
  find_run_state "$2"
  if [ $run_state = absent ]; then
    if create_exclusive "$fence" '-stopped -'; then
      answer "halted $1 never_started"
      return
    fi
    find_run_state "$2"
  fi
  # Nothing of a run outlives its boot, whose PIDs are other processes now.
  if [ $run_state = lost ] && [ -n "$its_boot" ] && [ "$its_boot" != "$boot" ]; then run_state=ended; fi
  case $run_state in
  running | lost)
    kill_tree asked
    if [ -z "$signalled" ] && await_end "$2"; then stop_result=ended; fi
    if [ -e "$dir/stopped" ] && [ $stop_result = ended ]; then stop_result=killed; fi # by another stop
    if [ $stop_result != ended ]; then signalled='' && mark_stopped; fi
    answer "halted $1 $stop_result"
    ;;
  ended)
    if [ -e "$dir/stopped" ]; then run_state=killed; fi
    answer "halted $1 $run_state"
    ;;
  wrong_node) answer "halted $1 wrong_node $its_node" ;;
  *) answer "halted $1 $run_state" ;;
  esac
}

# list_runs NUMBER FROM: lists the runs of at most 1,000 fences after the first FROM, except forgotten ones. If more
# follow, the answer says how many fences it has passed.
list_runs() {
  retries_left=40 seen=0 listed=0
  require_fences
  for file in "$base"/started/*; do
    if [ $listed -ge 1000 ]; then
      answer "listed $1 $seen"
      return
    fi
    seen=$((seen + 1))
    if [ $seen -le "$2" ]; then continue; fi
    token='' attempt=''
    { read -r token attempt <"$file"; } 2>/dev/null || [ -e "$file" ] || continue
    if [ "$token" = -forgotten ] && [ ! -d "$base/runs/$attempt" ]; then continue; fi
    find_run_state "${file##*/}"
    answer "item $1 ${file##*/} $run_state"
    listed=$((listed + 1))
  done
  answer "listed $1"
}

# probe_ffmpeg NUMBER
probe_ffmpeg() {
  program=$(command -v ffmpeg) || program=''
  found=''
  case $program in
  /*)
    for word in $(ffmpeg -hide_banner -encoders 2>/dev/null </dev/null); do
      case $word in libx264 | libvpx-vp9 | libvpx | libopenh264 | libsvtav1 | libaom-av1) ;; *) continue ;; esac
      case $found, in *",$word,"*) ;; *) found="$found,$word" ;; esac
    done
    ;;
  *) program=- ;;
  esac
  found=${found#,}
  answer "ffmpeg $1 ${found:--} $program"
}

# prepare_attempt: starts the preparation of one more attempt and does not wait for it.
prepare_attempt() {
  last_prepared=$((last_prepared + 1))
  detach "$interp" $flag "$agent" supervise "$name" $last_prepared "$mask" "$limit" $tool "$file_limit" "$interp" $flag \
    </dev/null >/dev/null 2>&1 9>&-
}

# has_disk_space: for all files of an attempt: with space for some only, attempts would be made and removed for ever.
has_disk_space() {
  { printf '%65536s' '' >"$serve_dir/probe"; } 2>/dev/null
  room=$(wc -c <"$serve_dir/probe")
  true >"$serve_dir/probe"
  [ ${room:-0} -ge 65536 ]
}

# is_being_prepared: whether the attempt in $dir has a live waiter, in a home that can be written. Where that is read-only,
# a waiter outlives its child.
is_being_prepared() { has_waiter && { true >"$serve_dir/probe"; } 2>/dev/null; }

# await_attempt TRIES: waits up to half a minute until attempt $last_used is ready. False if it has died, or has no live
# waiter after TRIES checks 5 ms apart, as on a full disk.
await_attempt() {
  dir=$base/runs/$name-$last_used tries=0
  until [ -e "$dir/ready" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 6000 ]; then return 1; fi
    if [ $((tries % 50)) -eq 0 ] && ! is_being_prepared; then
      if [ $tries -gt "$1" ] || ! has_disk_space; then return 1; fi
    fi
    sleep 0.005 || sleep 1
  done
  { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null && is_alive "$pid" "$its_start"
}

# find_process_limit: sets process_limit to the account's `ulimit -u`, which dash does not tell; empty if it is 10,000
# or more.
find_process_limit() {
  process_limit=''
  while read -r first second third _; do
    case "$first $second" in 'Max processes') process_limit=$third ;; esac
  done </proc/self/limits
  case $process_limit in '' | *[!0-9]* | ?????*) process_limit='' ;; esac
} 2>/dev/null

# has_places NUMBER: whether the account may have so many more processes.
has_places() {
  if [ -z "$process_limit" ]; then return 0; fi
  places=$((process_limit - $1))
  for file in /proc/[0-9]*; do
    if [ ! -O "$file" ]; then continue; fi
    set -- "$file"/task/* # each thread takes a place
    places=$((places - $#))
  done
  [ $places -ge 0 ]
}

# has_live_runs: whether a run of this serve lives, and will free its processes.
has_live_runs() {
  for file in "$base/runs/$name"-*/claim; do
    if [ -e "$file" ] && dir=${file%/claim} && ! find_end; then return 0; fi
  done
  return 1
}

# discard_attempt NUMBER: claims that prepared attempt, so that it never starts. False if it is not ready, or the disk
# is full.
discard_attempt() {
  dir=$base/runs/$name-$1 origin=this_boot
  if [ ! -e "$dir/ready" ] || ! create_exclusive "$dir/claim" -; then return 1; fi
  end_child
  has_waiter || rm -rf "$dir" # else the waiter writes to it before its supervisor, or its successor, removes it
}

# end_removed_attempts: ends what is prepared if a directory of it was removed.
end_removed_attempts() {
  number=$last_used
  while [ $number -lt $last_prepared ]; do
    number=$((number + 1))
    if [ ! -d "$base/runs/$name-$number" ]; then
      end_orphans
      return
    fi
  done
}

# discard_attempts: discards what is prepared beyond $ahead; what it cannot discard waits for the next ping.
discard_attempts() {
  while [ $last_prepared -gt $((last_used + ahead)) ]; do
    discard_attempt $((last_used + 1)) || return 0
    last_used=$((last_used + 1))
  done
}

# prepare_attempts NUMBER: prepares until so many are ahead, if the account may have their processes beside those of a
# run.
prepare_attempts() {
  while [ $last_prepared -lt $((last_used + $1)) ] && has_places $((PLACES / 2)); do prepare_attempt; done
}

# start_run HANDLE ID TOKEN MODE QUOTED
start_run() {
  if [ -e "$base/started/$2" ]; then
    printf 'run %s %s %s -\ntaken %s\n' "$1" "$2" "$3" "$1" >&9
    return
  fi
  # The command must not meet a limit that it would not meet without an agent.
  if ! has_places $PLACES && has_live_runs; then
    answer "crowded $1"
    return
  fi
  starting=$1
  last_used=$((last_used + 1))
  while [ $last_prepared -lt $last_used ]; do prepare_attempt; done
  if ! await_attempt 400; then
    # The attempt has died, perhaps on a full disk, and later ones too: prepares another one.
    while [ $last_used -le $last_prepared ]; do
      discard_attempt $last_used || skipped="$skipped $last_used" # it may be ready later, and is asked for nothing
      last_used=$((last_used + 1))
    done
    prepare_attempt
    if ! await_attempt 6000; then
      discard_attempt $last_used || skipped="$skipped $last_used"
      find_obstacle
      if [ "$why" = full ] && has_disk_space; then why=unprepared; fi
      answer "failed $1 $why"
      return
    fi
  fi
  if ! printf 'text=%s\nwhole=y\n' "$5" >"$dir/cmd"; then
    find_obstacle
    # Quoted, and beside what reads the start-up files.
    if [ "$file_limit" -gt 0 ] && [ $((${#5} + 65536)) -gt "$file_limit" ]; then why=file_limit; fi
    last_used=$((last_used - 1)) # nothing was requested of the attempt, so the next run takes it
    answer "failed $1 $why"
    return
  fi
  # The emitter must know the run before the child can notify it.
  starting=''
  echo "run $1 $2 $3 ${dir##*/}" >&9
  if ! echo "$1 $2 $3 $4" 1<>"$dir/go"; then
    find_obstacle
    last_used=$((last_used - 1))
    echo "failed $1 $why" >&9
    return
  fi
  prepare_attempts $ahead
}

# is_settled NUMBER: whether that attempt has claimed the run that it may have been asked to start, or never will.
is_settled() {
  dir=$base/runs/$name-$1
  if [ -e "$dir/claim" ]; then return 0; fi
  case " $skipped " in *" $1 "*)
    discard_attempt "$1" # it may be ready by now
    return 0
    ;;
  esac
  if [ ! -d "$dir" ]; then
    [ -d "$base/runs/." ] && [ ! -d "$dir" ]
    return
  fi
  # It may have become the command meanwhile.
  { read -r pid its_start <"$dir/child"; } 2>/dev/null && ! is_alive "$pid" "$its_start" && [ ! -e "$dir/claim" ]
}

# renew_birth: this serve now counts as born at its last ping (decision 2): the client has confirmed that its later
# requests are for unended runs, and all earlier requests have been claimed.
renew_birth() {
  while [ $settled -lt $last_used ]; do
    is_settled $((settled + 1)) || return 1
    settled=$((settled + 1))
  done
  mv "$serve_dir/mark" "$serve_dir/renewed"
}

refuse() {
  echo "windlass-agent 1 refused $1"
  exit 1
}

# lack WHAT: says what the host lacks.
lack() {
  echo "windlass-agent 1 unsupported $1"
  exit 1
}

# refuse_start: tells the client why the requested run that no attempt was asked for yet was not started, if no other agent
# could start it either. The emitter ends once it has told, which takes no longer than 2 s where the client reads.
refuse_start() {
  find_obstacle
  case $why in unwritable*) ;; *) return 0 ;; esac
  if ! read_process $emitter; then return 0; fi
  answer "failed $starting $why"
  echo end >&9
  tries=0
  while read_process $emitter && [ $tries -lt 400 ]; do
    tries=$((tries + 1))
    sleep 0.005 || sleep 1
  done
}

end_serve() {
  trap '' TERM HUP PIPE
  if [ -n "$starting" ]; then refuse_start; fi
  clean_up_serve "$name"
  # If only one of them died before it opened its fifos, the other would wait for ever.
  kill -TERM $emitter $ticker
  exec 9>&-
  # zsh also runs a trap while it reaps a child; `wait` would then wait for that child for ever.
  if [ -z "$trapped" ]; then wait; fi
  sweep
  exit 0
}

# count_cores: sets cores, without a fork where possible. The ranges `0-3,8` are five cores.
count_cores() {
  { IFS= read -r online </sys/devices/system/cpu/online; } 2>/dev/null || online=''
  if [ -z "$online" ]; then
    cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || cores=1
    return 0
  fi
  cores=0 online=$online,
  while [ -n "$online" ]; do
    range=${online%%,*} online=${online#*,}
    cores=$((cores + ${range#*-} - ${range%-*} + 1))
  done
}

# identify_fences: sets fences, the identity of the directory of fences (decision 26): inode, birth time and label. A
# directory that cannot be labelled gets one that holds for this serve only.
identify_fences() {
  set -- $(LC_ALL=C stat -c %i.%W "$base/started" || ls -di "$base/started")
  file=$base/started/.label tries=0
  until read_label && label=$found_label; do
    own=$name-$(LC_ALL=C od -An -N8 -tx1 /dev/urandom | tr -cd '[:xdigit:]') label=''
    if create_exclusive "$file" "$own"; then
      if read_label; then continue; fi
    elif [ -e "$file" ] && [ $tries -lt 20 ]; then # another serve is writing it
      tries=$((tries + 1))
      sleep_fraction 05
      continue
    fi
    # The disk is full, or its creator died before it wrote the label.
    rm -f "$file"
    break
  done
  fences=${1:--}.${label:-$own}
}

# keep_login: keeps the login shell's environment from before its start-up files, as text for sh; empty on a full disk.
keep_login() {
  if ! { true <"/proc/$$/environ"; } 2>/dev/null; then
    rm -rf "$serve_dir"
    lack '/proc/PID/environ, without which start-up files cannot be read by each command'
  fi
  file=$base/login.$boot-$$
  # What a shell makes read-only is not exported again.
  (export LC_ALL=C && tr '\n\000' '\001\n' <"$file" | sed -n "/^E*UID=/d; /^PPID=/d; /^SHELLOPTS=/d; /^BASHOPTS=/d
    s/'/'\\\\''/g; s/^\([A-Za-z_][A-Za-z0-9_]*\)=\(.*\)\$/export \1='\2'/p" | tr '\001' '\n' >"$serve_dir/login")
  rm -f "$file"
}

# serve LIMIT STARTUP SHELL [FLAG]: answers one client's requests, line by line, until its standard input ends.
serve() {
  limit=$1 startup=$2 interp=$3 flag=$4
  exec 2>/dev/null
  mask=$(umask)
  umask 077
  file_limit=$(ulimit -f)
  # In blocks of 512 bytes; bash counts 1,024.
  case $file_limit in *[!0-9]*) file_limit=0 ;; *) file_limit=$((file_limit * 512)) ;; esac
  find_process_limit
  unset BASH_ENV # for the commands only, not for the agent's own shells
  choose_detach_tool || lack 'setsid, perl or python3'
  identify_host
  read_process $$ || lack '/proc, or a ps that takes -o lstart= and -p, which that of BusyBox does not'
  name=$boot8-$$-$start
  serve_dir=$base/serve/$name
  why=$(mkdir -p "$base/runs" "$base/started" "$serve_dir" 2>&1) || refuse "cannot write: $why"
  if [ ! -d "$base/started/." ]; then
    rm -rf "$serve_dir"
    refuse "cannot read $base/started"
  fi
  # On a full disk these files stay empty: no run can start then, but output can be stored and runs forgotten.
  echo "$node" >"$serve_dir/born"
  true >"$serve_dir/${agent##*/}"
  # Another version's sweep removed the agent before this serve marked it as in use. Without a hello the client
  # reinstalls it.
  if [ ! -e "$agent" ]; then
    rm -rf "$serve_dir"
    exit 1
  fi
  # Quoted, so that an attempt reads it without a fork.
  printf '%s\n' "$environment" | (LC_ALL=C sed "s/'/'\\\\''/g; 1s/^/environment='/; \$s/\$/'/") >"$serve_dir/environment"
  # An old fish does not know the option.
  case ${SHELL-} in */fish)
    if "$SHELL" --no-config -c true </dev/null >/dev/null; then echo fish_option=--no-config >>"$serve_dir/environment"; fi
    ;;
  esac
  if [ "$startup" = each ]; then keep_login; fi
  count_cores
  identify_fences
  set -f
  available=0
  for word in $(LC_ALL=C df -Pk "$base"); do
    case $word in [0-9]*%) break ;; esac
    available=$word
  done
  set +f
  echo "windlass-agent 1 $node $boot $fences $cores $((available * 1024)) $HOME"
  if [ $((available * 512)) -lt "$limit" ]; then limit=$((available * 512)); fi
  if [ "$limit" -lt 1048576 ]; then limit=1048576; fi
  # The first command may come at once, and one attempt is ready sooner than two that share the host's cores.
  last_prepared=1000000 last_used=1000000 settled=1000000 skipped='' ahead=$PREPARED
  prepare_attempt
  mkfifo "$serve_dir/fifo" "$serve_dir/ticks" || exit 1
  exec 9<>"$serve_dir/fifo"
  # In subshells: a function with redirections would keep the saved descriptors open.
  (exec <"$serve_dir/fifo" 7>"$serve_dir/ticks" 9>&- && emit) &
  emitter=$!
  (exec <"$serve_dir/ticks" >/dev/null 9>&- && tick) &
  ticker=$!
  trapped='' marked='' sweeps=0 starting=''
  trap 'trapped=y; end_serve' TERM HUP PIPE
  # A file that `ulimit -f` does not allow is an error of its writer.
  if (trap : XFSZ); then trap : XFSZ; fi
  (exec >/dev/null 9>&- && sleep_fraction 5 && sweep && sweep_old) &
  while IFS=' ' read -r verb first second third fourth rest; do
    case $verb in
    run)
      start_run "$first" "$second" "$third" "$fourth" "$rest"
      starting=''
      ;;
    follow | ack | unfollow | credit) echo "$verb $first $second $third $fourth" >&9 ;;
    # These open the fifo for writing only: with a read end of their own they would block for ever on a full one without
    # reader.
    stop) (exec >/dev/null 9>"$serve_dir/fifo" && stop_run "$first" "$second") & ;;
    forget)
      sweeps=2 # at the second one all serves have renewed their birth
      (exec >/dev/null 9>"$serve_dir/fifo" && forget $first $second $third $fourth $rest) &
      ;;
    list) (exec >/dev/null 9>"$serve_dir/fifo" && list_runs "$first" "$second") & ;;
    ffmpeg) (exec >/dev/null 9>"$serve_dir/fifo" && probe_ffmpeg "$first") & ;;
    ahead)
      ahead=$first
      prepare_attempts $ahead
      discard_attempts
      ;;
    ping)
      if [ ! -d "$serve_dir" ]; then break; fi # cleaned up by another serve
      true >"$serve_dir/alive" # for other nodes; the client pings every 30 s
      end_removed_attempts
      discard_attempts
      if true >"$serve_dir/mark"; then marked=$first; fi
      answer "pong $first"
      ;;
    confirm)
      if [ "$marked" = "$first" ] && has_places 4 && renew_birth && [ $sweeps -gt 0 ] && [ ! -e "$serve_dir/sweeping" ]; then
        sweeps=$((sweeps - 1))
        true >"$serve_dir/sweeping"
        (exec >/dev/null 9>&- && sweep; rm -f "$serve_dir/sweeping") &
      fi
      ;;
    esac
  done
  end_serve
}

# This is the last line, so that a truncated file does nothing.
main "$@"
