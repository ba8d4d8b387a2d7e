# Part of agent.sh: the attempt, that is minder, pumps and body.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

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
    # About 4 MiB a segment: small ones cost forks, large ones are deleted late.
    count=$((4194304 * records / (bytes + 1)))
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

# An attempt needs nothing of what follows, and reading it takes a millisecond twice.
case $1 in minder | body)
  main "$@"
  exit
  ;;
esac
