# Part of agent.sh: an attempt: the waiter, whose child becomes the command; and the supervisor, which spools the output.
# shellcheck shell=sh disable=SC2009,SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# supervise NAME NUMBER UMASK LIMIT TOOL FILE_LIMIT SHELL FLAG: the waiter of an attempt (decision 45). The child has
# another session, so that the command's `kill 0` does not reach the agent, and is not started by `&`, whose children
# ignore SIGINT and SIGQUIT.
supervise() {
  attempt=$1-$2 mask=$3 limit=$4 tool=$5 file_limit=$6
  shift 6
  dir=$base/runs/$attempt fifo=$base/serve/${attempt%-*}/fifo
  identify_host
  mkdir "$dir" || exit 1
  read_process $$
  if ! { mkfifo "$dir/go" "$dir/note" "$dir/out" "$dir/err" && true >"$dir/spare" && true >"$dir/spare.exit" &&
    echo "$$ $start" >"$dir/waiter"; }; then
    rm -rf "$dir"
    exit 1
  fi
  open_streams
  # clean_up_serve renames the serve's directory first. If it removed this one meanwhile, the fifos above are plain
  # files, which wake nobody.
  if [ ! -d "${fifo%/*}" ]; then
    rm -rf "$dir"
    exit 1
  fi
  exec 4>"$dir/out" 5>"$dir/err" 6<>"$dir/go"
  hold_streams
  (exec </dev/null 4>&- 5>&- 6>&- && spool_attempt) &
  supervisor=$!
  read_process $supervisor
  supervisor_start=$start
  echo "$node $boot $supervisor $start" >"$dir/supervisor"
  lead_session "$@" "$agent" child "$attempt" "$mask" </dev/null >/dev/null 2>&1 3>&3 4>&4 5>&5 6>&6 8<&- 9<&-
  code=$?
  if [ $code -gt 256 ]; then code=$((code - 128)); fi # ksh counts signals from 256
  # Before the streams end, so that who sees their end finds it.
  outage=0
  until { true >"$dir/exit.$code"; } 2>/dev/null || mv "$dir/spare.exit" "$dir/exit.$code" || is_removed; do
    await_home
  done
  exec 4>&- 5>&-
  echo c >&3
  if ! is_alive $supervisor "$supervisor_start"; then respool "$attempt" "$limit" "$file_limit"; fi
}

# open_streams: opens the fifos without waiting for their other ends: note on 3, the command's streams on 8 and 9.
open_streams() { exec 3<>"$dir/note" 8<>"$dir/out" 9<>"$dir/err"; }

# hold_streams: reopens the streams for reading only, so that they can end. While the waiter or the supervisor holds
# them, the command gets no SIGPIPE, whichever of the two dies.
hold_streams() { exec 8<"$dir/out" 9<"$dir/err"; }

# find_heir: sets pid and its_start to the supervisor of the attempt in $dir. heir.PID.START names who replaced that one,
# and may have died before it wrote so into supervisor. False while a name is missing or being written.
find_heir() {
  { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null || return 1
  while [ -e "$dir/heir.$pid.$its_start" ]; do
    # The previous release wrote no start.
    { read -r pid its_start <"$dir/heir.$pid.$its_start" && [ -n "$its_start" ]; } 2>/dev/null || return 1
  done
}

# has_heir: whether a successor of the dead supervisor is alive that has not yet written itself into supervisor.
has_heir() {
  find_heir || { sleep_fraction 05 && find_heir; } || return 1 # it may be writing its name
  is_alive "$pid" "$its_start"
}

# respool ATTEMPT LIMIT FILE_LIMIT: replaces a killed supervisor. heir.* admits one successor.
respool() {
  attempt=$1 limit=$2 file_limit=$3
  dir=$base/runs/$attempt fifo=$base/serve/${attempt%-*}/fifo
  identify_host
  if ! find_heir || find_end || is_alive "$pid" "$its_start"; then exit; fi
  # Where the account may have no more processes, it ends here, before it is the heir.
  sleep 0 || exit
  # Before it is the heir: the waiter ends once it sees one, and output that nobody holds is lost with it.
  open_streams
  hold_streams
  read_process $$
  create_exclusive "$dir/heir.$pid.$its_start" "$$ $start" || exit
  if ! { echo "$node $boot $$ $start" >"$dir/heir" && mv "$dir/heir" "$dir/supervisor"; } 2>/dev/null; then
    echo "$node $boot $$ $start" >"$dir/supervisor"
  fi
  begin_spool
  drain_notes # of the dds that have ended
  ends=$lines
  for stream in o e; do
    find_copy $stream
    measure $stream
    eval "copy_$stream=\$copy"
    if [ -z "$copy" ]; then pending="$pending $stream"; fi
  done
  spool_streams
  record_end
}

# find_copy STREAM: sets copy to PID:START of the killed supervisor's dd that still copies this stream, or to nothing.
find_copy() {
  copy=''
  if [ -r /proc/self/cmdline ]; then
    found=$(grep -ls "of=.*/runs/$attempt/$1[.]1" /proc/[0-9]*/cmdline)
  else
    # Both parentheses of the pattern: bash 3.2 counts them to find the end of the substitution.
    found=$(ps -A -ww -o pid= -o args= | while read -r pid args; do
      case $args in (*of=*"/runs/$attempt/$1.1"*) echo "$pid" ;; esac
    done)
  fi
  for file in $found; do
    file=${file#/proc/}
    pid=${file%/cmdline}
    if read_process "$pid"; then copy=$pid:$start; fi
  done
}

# end_copy STREAM: the dd that find_copy had found has ended. Who was killed has printed no line.
end_copy() {
  eval "copy_$1=''"
  measure "$1"
  pending="$pending $1"
  drain_notes
  if [ $lines -gt $ends ]; then ends=$((ends + 1)); else true >"$dir/cut.$1.$at"; fi
}

# measure STREAM: sets at and at_STREAM to the end of what is stored of it. The home may leave between a look and a
# listing, so the listing counts that comes twice.
measure() {
  measured=''
  while :; do
    await_directory
    find_segments "$1"
    if [ "$newest" = "$measured" ]; then break; fi
    segment=$dir/$1.$((BASE + newest)) measured=$newest
    measure_segment
  done
  at=$((newest + bytes))
  eval "at_$1=$at"
}

# child ATTEMPT UMASK: waits for "HANDLE ID TOKEN MODE", claims its attempt, creates the fence and becomes the command.
# MODE: c a command of the account's shell; s, a, l a script for sh, for the account's shell, for sh in the login's
# environment. Those of s and a have as their argument the option by which the account's shell reads no start-up files.
child() {
  attempt=$1 dir=$base/runs/$1 fifo=$base/serve/${1%-*}/fifo
  exec 0<"$dir/go" 6>&- # the waiter holds it open for writing, so that it ends with the waiter
  read_process $$
  echo "$$ $start" >"$dir/child"
  # clean_up_serve renames the serve's directory, then kills the recorded children. The child records itself, then
  # checks the directory: at least one of them sees the other.
  if [ ! -d "${fifo%/*}" ] || [ ! -s "$dir/child" ]; then exit 1; fi
  environment='' fish_option=''
  # shellcheck source=/dev/null
  . "${fifo%/*}/environment"
  if [ -z "$environment" ]; then exit 1; fi
  login=''
  if [ -e "${fifo%/*}/login" ]; then
    login=$(cat "${fifo%/*}/login")
    if [ -z "$login" ]; then exit 1; fi
  fi
  true >"$dir/ready"
  if ! read -r handle id token mode; then
    echo c >&3
    exit 1
  fi
  if ! create_exclusive "$dir/claim" "$id"; then
    # Without a claim it starts nothing. Who has made one in its place tells that.
    if [ ! -e "$dir/claim" ]; then
      name=$attempt
      find_obstacle
      notify_emitter "failed $handle $why"
    fi
    exit 1
  fi
  echo "s $handle $id" >&3
  text='' whole=''
  # shellcheck source=/dev/null
  . "$dir/cmd"
  # On a network drive a full disk may show only at the close, which no shell reports.
  if [ -z "$whole" ] || [ ! -s "$dir/claim" ] || ! case $mode in
  s | a) printf '%s' "$text" >"$dir/script" && [ -s "$dir/script" ] ;;
  l) printf '%s\n%s' "$login" "$text" >"$dir/script" && [ -s "$dir/script" ] ;;
  esac; then
    notify_emitter "failed $handle full"
    exit 1
  fi
  if ! create_exclusive "$base/started/$id" "$token $attempt"; then
    notify_emitter "taken $handle"
    exit
  fi
  if [ ! -s "$base/started/$id" ]; then
    rm -f "$base/started/$id"
    notify_emitter "failed $handle full"
    exit 1
  fi
  true >"$dir/cmd" # may hold secrets, and is kept until the run is forgotten
  notify_emitter "started $handle"
  umask "$2"
  if [ "$mode" = l ]; then
    exec env -i WINDLASS_RUN="$dir" /bin/sh "$dir/script" </dev/null >&4 2>&5 3>&- 4>&- 5>&-
  fi
  # Restores all variables of the account, also those that this script has overwritten. $1 to $5 survive that.
  set -- "$dir" "$mode" "$text" "$environment" "$fish_option"
  eval "$4"
  export WINDLASS_RUN="$1"
  unset OLDPWD
  case ${KSH_VERSION-} in
  '') unset SHLVL ;;
  *) typeset +x SHLVL _AST_FEATURES ;; # ksh crashes in `exec` without SHLVL
  esac
  # The start-up files were read before. Of these shells each `-c` reads some, of Debian's bash under SSH.
  case ${SHELL:=/bin/sh} in
  */bash) set -- "$1" "$2" "$3" --norc ;;
  */zsh | */csh | */tcsh) set -- "$1" "$2" "$3" -f ;;
  */fish) set -- "$1" "$2" "$3" $5 ;;
  *) set -- "$1" "$2" "$3" ;;
  esac
  case $2 in
  s) exec /bin/sh "$1/script" ${4+"$4"} </dev/null >&4 2>&5 3>&- 4>&- 5>&- ;;
  a)
    # bash would run it for the script, too, which gives it to the command alone.
    if [ -n "${BASH_ENV+y}" ]; then
      export WINDLASS_BASH_ENV="$BASH_ENV"
      unset BASH_ENV
    fi
    exec "$SHELL" "$1/script" ${4+"$4"} </dev/null >&4 2>&5 3>&- 4>&- 5>&-
    ;;
  esac
  exec "$SHELL" ${4+"$4"} -c "$3" </dev/null >&4 2>&5 3>&- 4>&- 5>&-
}

# An attempt needs nothing that follows. Parsing that would cost both of its shells a millisecond.
case $1 in supervise | respool | child)
  main "$@"
  exit
  ;;
esac
