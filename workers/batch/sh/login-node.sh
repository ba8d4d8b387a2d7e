# What a worker does with batch jobs on a login node. It is sent over a channel, followed by one call of these functions.
# shellcheck shell=sh disable=SC2034
#
# ~/.windlass/batch/NAME/ is the directory of one submission. What is decided once is decided by a rename, which succeeds in
# one process and works on a full disk:
#   ask    becomes `asked` before the one call of the batch system's submit command, or `withdrawn`: there is none
#   go     becomes `begun` by the job itself before it runs anything, or `void`: it never will
#   spare  becomes `end.CODE.OUT.ERR[.t]`: the exit status, the bytes of both streams, and whether it was told to end
#   answer.CODE, answer.err: what the submit command printed; job, request, script: what it is to run; out, err: its output

base=$HOME/.windlass/batch
# Where batch systems are, if the start-up files of the account do not say so.
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin
# The one who asked may be gone, and the submit command must go on.
trap '' HUP PIPE

# begin_directory NAME CWD PROGRAM: the directory that is then filled.
begin_directory() {
  dir=$base/$1
  umask 077
  command -v "$3" >/dev/null || stop_with no_engine
  [ -z "$2" ] || [ -d "$2" ] || stop_with no_cwd
  mkdir -p "$base"
  mkdir "$dir" || stop_with cannot_write
}

# end_directory: a full disk leaves files empty.
end_directory() {
  if [ -s "$dir/job" ] && [ -s "$dir/request" ] && true >"$dir/spare" && true >"$dir/ask" && true >"$dir/go"; then
    echo prepared
  else
    rm -rf "$dir"
    stop_with cannot_write
  fi
}

stop_with() {
  echo "failed $1"
  exit 0
}

# submit NAME CWD: calls `submit_job`, once for this directory, from the directory that the job's user named.
submit() {
  dir=$base/$1
  touch -c "$dir/ask" 2>/dev/null # how long ago is told by the file's time
  if mv "$dir/ask" "$dir/asked" 2>/dev/null; then
    cd "${2:-$HOME}" || cd || exit
    submit_job >"$dir/answer.new" 2>"$dir/answer.err" </dev/null
    mv "$dir/answer.new" "$dir/answer.$?"
  fi
}

# void NAME: it never runs, unless it has begun.
void() { mv "$base/$1/go" "$base/$1/void" 2>/dev/null; }

# withdraw NAME: nor is it submitted, unless it was.
withdraw() {
  mv "$base/$1/ask" "$base/$1/withdrawn" 2>/dev/null
  void "$1"
}

# look NAME: prints `at NAME DIRECTORY ASK GO END ANSWER`.
look() {
  dir=$base/$1
  if [ ! -d "$dir/." ]; then
    # Only where the home itself is there does this say anything.
    if [ -d "$base/." ]; then echo "at $1 gone - - - -"; fi
    return
  fi
  ask=none go=none end=- answer=-
  for file in ask asked withdrawn; do if [ -e "$dir/$file" ]; then ask=$file; fi; done
  for file in go begun void; do if [ -e "$dir/$file" ]; then go=$file; fi; done
  for file in "$dir"/end.*; do if [ -e "$file" ]; then end=${file##*/end.}; fi; done
  for file in "$dir"/answer.[0-9]*; do if [ -e "$file" ]; then answer=${file##*/answer.}; fi; done
  if [ "$ask$answer" = asked- ] && [ -n "$(find "$dir/asked" -mmin +1 2>/dev/null)" ]; then answer=overdue; fi
  echo "at $1 there $ask $go $end $answer"
}

# read_answer NAME: what the submit command printed, a line each with its stream.
read_answer() {
  sed 's/^/printed /' "$base/$1"/answer.[0-9]* 2>/dev/null
  head -c 2000 "$base/$1/answer.err" 2>/dev/null | sed 's/^/complained /'
}

# measure NAME…: prints `bytes SIZE DIRECTORY/NAME/STREAM` of what there is.
measure() {
  for name in "$@"; do
    shift
    for stream in out err; do
      if [ -s "$base/$name/$stream" ]; then set -- "$@" "$base/$name/$stream"; fi
    done
  done
  # Of two files or more wc adds a total.
  if [ $# -gt 0 ]; then wc -c "$@" /dev/null | sed 's/^/bytes /'; fi
}

# read_output NAME OUT ERR MOST: `bytes` and the bytes of both streams from these offsets on, at most MOST of each.
read_output() {
  dir=$base/$1
  set -- "$dir" "$2" "$3" "$4" 0 0
  if [ -e "$dir/out" ]; then set -- "$1" "$2" "$3" "$4" $(($(wc -c <"$dir/out") - $2)) 0; fi
  if [ -e "$dir/err" ]; then set -- "$1" "$2" "$3" "$4" "$5" $(($(wc -c <"$dir/err") - $3)); fi
  out=$5 err=$6
  if [ "$out" -gt "$4" ]; then out=$4; fi
  if [ "$err" -gt "$4" ]; then err=$4; fi
  if [ "$out" -lt 0 ]; then out=0; fi
  if [ "$err" -lt 0 ]; then err=0; fi
  echo "bytes $out $err"
  if [ "$out" -gt 0 ]; then tail -c "+$(($2 + 1))" "$dir/out" | head -c "$out"; fi
  if [ "$err" -gt 0 ]; then tail -c "+$(($3 + 1))" "$dir/err" | head -c "$err"; fi
}

# remove JOB: all of its submissions. A job that begins later finds no fence, and so runs nothing.
remove() { rm -rf "$base/$1"-*; }

