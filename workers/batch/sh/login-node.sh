# Functions for batch jobs on a login node. They are sent over a channel, followed by one call of them.
# shellcheck shell=sh disable=SC2034,SC2154
# What the submit command sees has names that no account exports, because the job gets the same environment.
#
# ~/.windlass/batch/NAME/ is one submission (decision 41). A rename decides, in one process, even on a full disk:
#   ask    becomes `asked` before the only call of the submit command, or `withdrawn`: it is never called
#   go     becomes `begun` by the job itself before it runs anything, or `void`: it never runs
#   again  is made by a job that is started and finds `begun`
#   spare  becomes `end.CODE.OUT.ERR[.t]`: exit status, bytes of both streams, `.t` if it was told to end
#   pipe.STREAM is removed when all that came through it is in a file, or becomes `lost.STREAM`; on nodes without Perl
#   answer.CODE, answer.err: what the submit command printed; job, request, variables, script: its input; out, err: output

windlass_base=$HOME/.windlass/batch
# Usual places of batch systems, for accounts whose start-up files do not name them.
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin
# The one who asked may be gone, and the submit command must go on.
trap '' HUP PIPE

# begin_directory NAME CWD PROGRAM: the directory that is then filled.
begin_directory() {
  windlass_dir=$windlass_base/$1
  umask 077
  mkdir -p "$windlass_base"
  mkdir "$windlass_dir" # a change of the folder also makes an NFS client see what others did in it
  find_submitted "${1%-*}"
  command -v "$3" >/dev/null || stop_with no_engine
  [ -z "$2" ] || [ -d "$2" ] || stop_with no_cwd
  [ -d "$windlass_dir" ] || stop_with cannot_write
}

# find_submitted JOB: the database may have lost the records of submissions. Those that wait to be submitted are withdrawn; one
# that was submitted, and not revoked, is followed in place of another one.
find_submitted() {
  for found in "$windlass_base/$1"-*; do
    if mv "$found/ask" "$found/withdrawn" 2>/dev/null; then revoke "${found##*/}"; fi
    if [ -e "$found/asked" ] && [ ! -e "$found/void" ]; then
      rm -rf "$windlass_dir"
      echo "submitted ${found##*/}"
      exit 0
    fi
  done
}

# has_bytes FILE BYTES: whether the file was written whole: a disk that fills up takes only its beginning.
has_bytes() { [ $(($(wc -c <"$windlass_dir/$1"))) -eq "$2" ] || stop_with cannot_write; }

# end_directory: nobody can submit it before.
end_directory() {
  if true >"$windlass_dir/spare" && true >"$windlass_dir/go" && true >"$windlass_dir/ask"; then
    echo prepared
  else
    stop_with cannot_write
  fi
}

# stop_with WHY: nothing of the directory stays.
stop_with() {
  rm -rf "$windlass_dir"
  echo "failed $1"
  exit 0
}

# submit NAME CWD: calls `submit_job`, once for this directory, in the directory that the job's user named.
submit() {
  windlass_dir=$windlass_base/$1
  touch -c "$windlass_dir/ask" 2>/dev/null # how long ago is told by the file's time
  if mv "$windlass_dir/ask" "$windlass_dir/asked" 2>/dev/null; then
    cd "${2:-$HOME}" || cd || exit
    submit_job >"$windlass_dir/answer.new" 2>"$windlass_dir/answer.err" </dev/null
    mv "$windlass_dir/answer.new" "$windlass_dir/answer.$?"
  fi
}

# with_functions PROGRAM…: with the functions that the account exports, which the job gets, too. `exec` calls none of them.
with_functions() (
  eval "$windlass_functions"
  exec "$@"
)

# revoke NAME: it never runs, unless it has begun, and needs no variables.
revoke() {
  mv "$windlass_base/$1/go" "$windlass_base/$1/void" 2>/dev/null || return
  true >"$windlass_base/$1/request"
  true >"$windlass_base/$1/variables"
}

# withdraw NAME: nor is it submitted, unless it was.
withdraw() {
  mv "$windlass_base/$1/ask" "$windlass_base/$1/withdrawn" 2>/dev/null
  revoke "$1"
}

# refresh NAME: makes an NFS client see what nodes did in the directory: its cache of names may be a minute old until it
# changes the directory itself.
refresh() { { true >"$windlass_base/$1/seen" && rm -f "$windlass_base/$1/seen"; } 2>/dev/null; }

# look NAME: prints `at NAME DIRECTORY ASK GO END ANSWER`.
look() {
  windlass_dir=$windlass_base/$1
  if [ ! -d "$windlass_dir/." ]; then
    # Only where the home itself is there does this say anything; it may have come back since.
    if [ -d "$windlass_base/." ] && [ ! -d "$windlass_dir/." ]; then echo "at $1 gone - - - -"; fi
    return
  fi
  ask=none go=none end=- answer=-
  for file in ask asked withdrawn; do if [ -e "$windlass_dir/$file" ]; then ask=$file; fi; done
  for file in go begun again void; do if [ -e "$windlass_dir/$file" ]; then go=$file; fi; done
  for file in "$windlass_dir"/end.*; do if [ -e "$file" ]; then end=${file##*/end.}; fi; done
  for file in "$windlass_dir"/answer.[0-9]*; do if [ -e "$file" ]; then answer=${file##*/answer.}; fi; done
  if [ "$ask$answer" = asked- ] && [ -n "$(find "$windlass_dir/asked" -mmin +1 2>/dev/null)" ]; then answer=overdue; fi
  echo "at $1 there $ask $go $end $answer"
}

# read_answer NAME: what the submit command printed, a line each with its stream.
read_answer() {
  sed 's/^/printed /' "$windlass_base/$1"/answer.[0-9]* 2>/dev/null
  head -c 2000 "$windlass_base/$1/answer.err" 2>/dev/null | sed 's/^/complained /'
}

# measure NAME…: prints `bytes SIZE DIRECTORY/NAME/STREAM` of what there is.
measure() {
  for name in "$@"; do
    shift
    for stream in out err; do
      if [ -s "$windlass_base/$name/$stream" ]; then set -- "$@" "$windlass_base/$name/$stream"; fi
    done
  done
  # With two files or more wc adds a total.
  if [ $# -gt 0 ]; then wc -c "$@" /dev/null | sed 's/^/bytes /'; fi
}

# read_output NAME OUT ERR MOST: `bytes`, then both streams' bytes from these offsets, at most MOST of each.
read_output() {
  windlass_dir=$windlass_base/$1
  set -- "$windlass_dir" "$2" "$3" "$4" 0 0
  if [ -e "$windlass_dir/out" ]; then set -- "$1" "$2" "$3" "$4" $(($(wc -c <"$windlass_dir/out") - $2)) 0; fi
  if [ -e "$windlass_dir/err" ]; then set -- "$1" "$2" "$3" "$4" "$5" $(($(wc -c <"$windlass_dir/err") - $3)); fi
  out=$5 err=$6
  if [ "$out" -gt "$4" ]; then out=$4; fi
  if [ "$err" -gt "$4" ]; then err=$4; fi
  if [ "$out" -lt 0 ]; then out=0; fi
  if [ "$err" -lt 0 ]; then err=0; fi
  echo "bytes $out $err"
  if [ "$out" -gt 0 ]; then tail -c "+$(($2 + 1))" "$windlass_dir/out" | head -c "$out"; fi
  if [ "$err" -gt 0 ]; then tail -c "+$(($3 + 1))" "$windlass_dir/err" | head -c "$err"; fi
}

# remove JOB [NAME]: removes all submissions of the job but NAME, the fence of each first: a job that begins later finds
# none, and runs nothing.
remove() {
  [ -d "$windlass_base/." ] || return # nothing is found where the home is unreachable
  for windlass_dir in "$windlass_base/$1"-*; do
    if [ "$windlass_dir" != "$windlass_base/${2-}" ]; then rm -rf "$windlass_dir/go" "$windlass_dir"; fi
  done
  echo "removed $1"
}

# within SECONDS COMMAND…: ends it after that time, if the host has a program for that.
within() {
  if command -v timeout >/dev/null; then timeout "$@"; else shift && "$@"; fi
}

# say_home: whether the home is there, so that the functions above worked in it.
say_home() { if [ -d "$windlass_base/." ]; then echo home; fi; }
