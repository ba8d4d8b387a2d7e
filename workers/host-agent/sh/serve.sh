# Part of agent.sh: the requests of a client.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

say() { printf 'say %s\n' "$1" >&9; }

# Each request that is answered bears a number, and so does its answer.

# stop_run NUMBER ID
stop_run() {
  judge "$2"
  if [ $verdict = absent ]; then
    if create "$fence" '-stopped -'; then
      say "halted $1 never"
      return
    fi
    judge "$2"
  fi
  case $verdict in
  running | lost)
    # Whoever asks after its end is told that it did not come by itself.
    # As the record of an end it needs no room: what was made ready is told no more once it runs.
    if ! { true >"$dir/stopped"; } 2>/dev/null; then mv "$dir/ready" "$dir/stopped"; fi
    halt
    say "halted $1 $how"
    ;;
  ended)
    if [ -e "$dir/stopped" ]; then verdict=mark; fi
    say "halted $1 $verdict"
    ;;
  wrong_node) say "halted $1 wrong_node $where" ;;
  *) say "halted $1 $verdict" ;;
  esac
}

# list_runs NUMBER FROM: those that are kept, without the fences of what was forgotten: a thousand at most, past the
# first FROM fences. Where there are more it says how many it has looked at.
list_runs() {
  patience=40 seen=0 listed=0
  need_fences
  for file in "$base"/started/*; do
    if [ $listed -ge 1000 ]; then
      say "listed $1 $seen"
      return
    fi
    seen=$((seen + 1))
    if [ $seen -le "$2" ]; then continue; fi
    token='' dn=''
    { read -r token dn <"$file"; } 2>/dev/null || [ -e "$file" ] || continue
    if [ -n "$dn" ] && [ "$token" != -stopped ] && [ ! -d "$base/runs/$dn" ]; then continue; fi
    judge "${file##*/}"
    say "item $1 ${file##*/} $verdict"
    listed=$((listed + 1))
  done
  say "listed $1"
}

# probe_ffmpeg NUMBER
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
  say "ffmpeg $1 ${found:--} $program"
}

# prepare: makes one more attempt ready, to be waited for only when it is needed.
prepare() {
  made=$((made + 1))
  detach "$interp" $flag "$agent" minder "$name" $made "$mask" "$limit" $tool "$interp" $flag \
    </dev/null >/dev/null 2>&1 9>&-
}

# has_room: for all the files of an attempt. Room for some of them is none: those would be made and removed again for ever.
has_room() {
  { printf '%65536s' '' >"$mine/probe"; } 2>/dev/null
  room=$(wc -c <"$mine/probe")
  true >"$mine/probe"
  [ ${room:-0} -ge 65536 ]
}

# await_attempt PATIENCE: until the attempt of number $used is ready; false when it has died, or has no directory after
# PATIENCE looks 5 ms apart: on a full disk none lasts. A busy host is waited for half a minute.
await_attempt() {
  dir=$base/runs/$name-$used tries=0
  until [ -e "$dir/ready" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 6000 ]; then return 1; fi
    if [ ! -d "$dir" ] && [ $((tries % 50)) -eq 0 ]; then
      if [ $tries -gt "$1" ] || ! has_room; then return 1; fi
    fi
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
  if ! await_attempt 400; then
    # What was prepared has died, on a full disk perhaps: one fresh attempt.
    used=$((made + 1))
    prepare
    if ! await_attempt 6000; then
      why=full
      if has_room; then why=unprepared; fi
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
  # Ended before it opened its fifos, the one would leave the other waiting for ever.
  kill -TERM $emitter $ticker
  exec 9>&-
  wait
  sweep
  exit 0
}

# count_cores: sets cores, without a fork where it can: `0-3,8` are five.
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

# know_fences: sets fences, which names the folder of the fences for good: another one, in a home that is not the same or
# made since that was removed, knows nothing of what was started under the first. Its label tells it from one that got the
# same inode later, the inode from a copy. A folder that can be given no label has a name for this serve alone.
know_fences() {
  set -- $(LC_ALL=C stat -c %i.%W "$base/started" || ls -di "$base/started")
  file=$base/started/.label tries=0
  until read_label && label=$said; do
    own=$name-$(LC_ALL=C od -An -N8 -tx1 /dev/urandom | tr -cd '[:xdigit:]') label=''
    if create "$file" "$own"; then
      if read_label; then continue; fi
    elif [ -e "$file" ] && [ $tries -lt 20 ]; then # another serve writes it at this moment
      tries=$((tries + 1))
      doze 05
      continue
    fi
    # Of a full disk, or whose maker died before it wrote.
    rm -f "$file"
    break
  done
  fences=${1:--}.${label:-$own}
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
  if [ ! -d "$base/started/." ]; then
    rm -rf "$mine"
    refuse "cannot read $base/started"
  fi
  # On a full disk these stay empty: no run can start then, but those there are can be stored and forgotten.
  echo "$node" >"$mine/born"
  true >"$mine/${agent##*/}"
  # Removed as an old version's before it was marked as read: with nothing said it is installed once more.
  if [ ! -e "$agent" ]; then
    rm -rf "$mine"
    exit 1
  fi
  printf '%s\n' "$environment" >"$mine/environment"
  count_cores
  know_fences
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
  # The first command may be on its way. One attempt is ready sooner than two, which would share the host's cores.
  made=1000000 used=1000000
  prepare
  mkfifo "$mine/fifo" "$mine/ticks" || exit 1
  exec 9<>"$mine/fifo"
  # In a subshell of its own: a redirected function would keep the old descriptors, saved, and so keep them open.
  (exec <"$mine/fifo" 7>"$mine/ticks" 9>&- && emit) &
  emitter=$!
  (exec <"$mine/ticks" >/dev/null 9>&- && tick) &
  ticker=$!
  trap end_serve TERM HUP PIPE
  (exec >/dev/null 9>&- && doze 5 && sweep && sweep_old) &
  while IFS=' ' read -r verb first second third fourth rest; do
    case $verb in
    run) start_run "$first" "$second" "$third" "$fourth" "$rest" ;;
    follow | ack | unfollow | credit) echo "$verb $first $second $third $fourth" >&9 ;;
    # Their own end of the fifo is for writing alone: with one for reading too they would wait for ever on a full one whose
    # reader has gone.
    stop) (exec >/dev/null 9>"$mine/fifo" && stop_run "$first" "$second") & ;;
    forget) (exec >/dev/null 9>"$mine/fifo" && forget $first $second $third $fourth $rest) & ;;
    list) (exec >/dev/null 9>"$mine/fifo" && list_runs "$first" "$second") & ;;
    ffmpeg) (exec >/dev/null 9>"$mine/fifo" && probe_ffmpeg "$first") & ;;
    ping)
      if [ ! -d "$mine" ]; then break; fi # retired from elsewhere
      true >"$mine/alive" # for other nodes; the client asks every 30 s
      say "pong $first"
      ;;
    esac
  done
  end_serve
}

# The last line: a file cut short does nothing.
main "$@"
