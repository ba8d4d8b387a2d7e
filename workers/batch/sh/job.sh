# The end of each batch job's script, whose argument is the directory of its submission. It runs on the job's first node.
# What it sets before the command has a name that no account exports, which the command would see.
# shellcheck shell=sh disable=SC1091,SC2034,SC2154
#
# The fence: a rename succeeds in one process only. Whoever comes second, because the batch system started the job anew, or
# forgot it, or the service withdrew this submission, runs nothing. A rename works on a full disk.
mv "$1/go" "$1/begun" 2>/dev/null || exit 0
# A signal is for what the command started. TERM tells that the batch system ends the job.
windlass_told=
trap 'windlass_told=.t' TERM
trap : HUP INT QUIT USR1 USR2 XCPU
windlass_shell=${SHELL:-/bin/sh}
# Sets windlass_cwd, and defines run.
. "$1/request"
if cd "$windlass_cwd" 2>/dev/null; then
  # Its standard input is what the job's is: nothing, or what --input names.
  (run "$1")
  code=$?
else
  code=cwd
fi
if [ -e "$1/out" ]; then out=$(($(wc -c <"$1/out"))); else out=0; fi
if [ -e "$1/err" ]; then err=$(($(wc -c <"$1/err"))); else err=0; fi
mv "$1/spare" "$1/end.$code.$out.$err$windlass_told"
case $code in
cwd) exit 1 ;;
*) exit "$code" ;;
esac
