# Part of agent.sh: an attempt, which consists of a supervisor, two pumps and the child that becomes the command.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# find_segments STREAM: sets oldest and newest, the offsets of the first and the last segment in its spool.
find_segments() {
  set -- "$dir/$1".1*
  oldest=${1##*.}
  eval "newest=\${$#}"
  newest=${newest##*.}
  case $oldest in *[!0-9]*) oldest=$BASE newest=$BASE ;; esac
  oldest=$((oldest - BASE)) newest=$((newest - BASE))
}

# pump STREAM: copies standard input into segments and reports "STREAM BYTES ok|full|dead" on descriptor 3. It pauses,
# and so blocks the command, while the spool of both streams exceeds $limit. The first dd starts before the command.
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
      # GNU dd warns of short reads, which are normal on a pipe.
      while case $stats in dd:*) ;; *) false ;; esac do stats=${stats#*"$nl"}; done
      set -- $stats
      records=$((${1%+*} + ${1#*+}))
      case $8 in byte* | '('*) bytes=$7 ;; esac
    fi
    if [ -z "$bytes" ]; then bytes=$(($(wc -c <"$segment"))); fi
    at=$((at + bytes))
    if [ $result -gt 128 ]; then
      # It was killed and may have dropped bytes, so the output is incomplete.
      echo "$stream $at dead" >&3
      return
    elif [ $result -ne 0 ]; then
      echo "$stream $at full" >&3
      (exec >/dev/null 2>&1 3>&- && kill_tree) &
      cat >/dev/null 3>&-
      return
    fi
    [ "$records" -ge $count ] || break
    # About 4 MiB a segment: small segments cost forks, large ones are deleted late.
    count=$((4194304 * records / (bytes + 1)))
    if [ $count -lt 16 ]; then count=16; fi
    if [ $count -gt 1024 ]; then count=1024; fi
    while
      find_segments $other
      spooled=$((newest - oldest))
      find_segments "$stream"
      [ $((spooled + at - oldest)) -ge "$limit" ]
    do sleep_fraction 1; done
  done
  echo "$stream $at ok" >&3
}

# notify_emitter LINE: sends it to the emitter of the serve that prepared this attempt, if that is alive. A fifo that is
# open for reading and writing neither blocks nor kills its writer. The directory of a dead serve is renamed before it is
# removed, so this creates no file there.
notify_emitter() { if [ -p "$fifo" ]; then echo "$1" 1<>"$fifo"; fi; } 2>/dev/null

# supervise NAME NUMBER UMASK LIMIT TOOL SHELL FLAG: the run supervisor. It prepares an attempt, waits for a command and
# for its end, and records the end. The command has another session, so its `kill 0` does not reach the supervisor.
supervise() {
  attempt=$1-$2 mask=$3 limit=$4 tool=$5
  shift 5
  dir=$base/runs/$attempt fifo=$base/serve/${attempt%-*}/fifo
  identify_host
  mkdir "$dir" || exit 1
  read_process $$
  if ! { mkfifo "$dir/go" && true >"$dir/spare" && echo "$node $boot $$ $start" >"$dir/supervisor"; }; then
    rm -rf "$dir"
    exit 1
  fi
  reports=$(
    {
      {
        {
          lead_session "$@" "$agent" child "$attempt" "$mask" </dev/null >/dev/null 2>&1 3>&3 4>&4 5>&5
          echo "c $?" >&3
        } 5>&1 >/dev/null | (exec >/dev/null 4>&- && pump e)
      } 4>&1 | (exec >/dev/null && pump o)
    } 3>&1
  )
  handle='' id=- code='' out='' err='' spool=ok
  set -- $reports
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
  if [ "$fenced" != "$attempt" ]; then # this attempt started nothing
    rm -rf "$dir"
    exit
  fi
  # Without all three reports the end is unknown. A run without a record counts as lost.
  if [ -z "$code" ] || [ -z "$out" ] || [ -z "$err" ] || [ $spool = dead ]; then exit 1; fi
  if [ "$code" -gt 256 ]; then code=$((code - 128)); fi # ksh counts signals from 256
  if [ $spool = full ]; then code=full; fi
  # The record is a file name, because a rename works on a full disk and a new file may not.
  if ! { true >"$dir/end.$code.$out.$err"; } 2>/dev/null; then mv "$dir/spare" "$dir/end.$code.$out.$err"; fi
  notify_emitter "done $handle $code $out $err"
}

# child ATTEMPT UMASK: waits for "HANDLE ID TOKEN MODE", claims its attempt, creates the fence and becomes the command.
child() {
  attempt=$1 dir=$base/runs/$1 fifo=$base/serve/${1%-*}/fifo
  exec 0<>"$dir/go"
  read_process $$
  echo "$$ $start" >"$dir/child"
  # clean_up_serve renames the serve's directory and then kills the children on record. The child records itself and then
  # checks the directory. So at least one of them sees the other.
  if [ ! -d "${fifo%/*}" ] || [ ! -s "$dir/child" ]; then exit 1; fi
  environment=$(cat "${fifo%/*}/environment")
  if [ -z "$environment" ]; then exit 1; fi
  true >"$dir/ready"
  read -r handle id token mode || exit 1
  create_exclusive "$dir/claim" "$id" || exit 1
  echo "s $handle $id" >&3
  # shellcheck source=/dev/null
  . "$dir/cmd"
  if [ "$mode" = s ] && ! printf '%s' "$text" >"$dir/script"; then
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
  notify_emitter "started $handle"
  umask "$2"
  # Restores all variables of the account, also those that this script has overwritten. $1 to $4 survive that.
  set -- "$dir" "$mode" "$text" "$environment"
  eval "$4"
  export WINDLASS_RUN="$1"
  unset OLDPWD
  case ${KSH_VERSION-} in
  '') unset SHLVL ;;
  *) typeset +x SHLVL _AST_FEATURES ;; # ksh crashes in `exec` without SHLVL
  esac
  if [ "$2" = s ]; then exec /bin/sh "$1/script" </dev/null >&4 2>&5 3>&- 4>&- 5>&-; fi
  # Under SSH, Debian's bash reads .bashrc for each `-c`; it was read before.
  case ${SHELL:=/bin/sh} in
  */bash) exec "$SHELL" --norc -c "$3" </dev/null >&4 2>&5 3>&- 4>&- 5>&- ;;
  *) exec "$SHELL" -c "$3" </dev/null >&4 2>&5 3>&- 4>&- 5>&- ;;
  esac
}

# An attempt needs nothing that follows. Parsing that would cost both of its shells a millisecond.
case $1 in supervise | child)
  main "$@"
  exit
  ;;
esac
