# The end of each batch job's script, whose argument is the directory of its submission. It runs on the job's first node.
# shellcheck shell=sh disable=SC1091,SC2034,SC2154
dir=$1
# The fence: a rename succeeds in one process only. Whoever comes second, because the batch system started the job anew, or
# forgot it, or the service withdrew this submission, runs nothing. A rename works on a full disk.
mv "$dir/go" "$dir/begun" 2>/dev/null || exit 0
# A signal is for what the command started. TERM tells that the batch system ends the job.
ended_by=
trap 'ended_by=.t' TERM
trap : HUP INT QUIT USR1 USR2 XCPU
shell=${SHELL:-/bin/sh}
# Sets cwd, exports the variables of the request, and defines run.
. "$dir/request"
if cd "$cwd" 2>/dev/null; then
  (run) </dev/null
  code=$?
else
  code=cwd
fi
if [ -e "$dir/out" ]; then out=$(($(wc -c <"$dir/out"))); else out=0; fi
if [ -e "$dir/err" ]; then err=$(($(wc -c <"$dir/err"))); else err=0; fi
mv "$dir/spare" "$dir/end.$code.$out.$err$ended_by"
case $code in
cwd) exit 1 ;;
*) exit "$code" ;;
esac
