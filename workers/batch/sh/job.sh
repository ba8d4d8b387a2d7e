# The end of each batch job's script, run on the job's first node with the directory of its submission as argument.
# Variables set before the command have names that no account exports, because the command would see those.
# Before it stands what keeps the account's functions in $windlass_functions, and drops them: they are for the command.
# shellcheck shell=sh disable=SC1091,SC2016,SC2034,SC2154

# windlass_end DIRECTORY CODE TOLD: records how it ended.
windlass_end() {
  if [ -e "$1/out" ]; then out=$(($(wc -c <"$1/out"))); else out=0; fi
  if [ -e "$1/err" ]; then err=$(($(wc -c <"$1/err"))); else err=0; fi
  mv "$1/spare" "$1/end.$2.$out.$err$3"
  case $2 in
  cwd) exit 1 ;;
  *) exit "$2" ;;
  esac
}

# Runs `sh JOB DIRECTORY run`, then becomes `sh JOB DIRECTORY end CODE TOLD`. Passes signals for this process alone, as
# by `--signal=B:USR1`, to the command. A signal for all processes also kills an idle child, and is not passed. A shell
# cannot do that: it defers signals while it waits, or misses its child's end.
windlass_relay='
  my ($job, $dir) = @ARGV;
  my ($told, $idle, $command) = ("", 0, 0);
  my @signals = qw(HUP INT QUIT ABRT ALRM USR1 USR2 XCPU TERM);
  # 0 if the account may have no more processes, for ten seconds.
  sub start {
    for (1 .. 100) {
      my $pid = fork;
      return $pid if $pid;
      if (defined $pid) {
        exec @_;
        exit 127;
      }
      select undef, undef, undef, 0.1 if $_ < 100;
    }
    return 0;
  }
  for my $signal (@signals) {
    $SIG{$signal} = sub {
      local ($?, $!);
      $told = ".t" if $signal eq "TERM";
      select undef, undef, undef, 0.2;
      if (!$idle || waitpid($idle, 1) != 0) { $idle = start("sleep", "2147483647") }
      elsif ($command) { kill $signal, $command }
    };
  }
  $idle = start("sleep", "2147483647");
  $command = start("/bin/sh", $job, $dir, "run") if $idle;
  if (!$command) {
    print STDERR "windlass: the node cannot start the command: $!\n";
    kill "KILL", $idle if $idle;
    # Without a process of another program. 126 is the status of a shell that cannot run a command.
    my ($out, $err) = map { (-s "$dir/$_") || 0 } "out", "err";
    rename "$dir/spare", "$dir/end.126.$out.$err$told";
    exit 126;
  }
  until (waitpid($command, 0) == $command) { last if $! != 4 }
  my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
  # A batch system that ends a job signals one process after the other: the command may have ended before this one.
  $command = 0;
  select undef, undef, undef, 0.5 unless $told;
  $SIG{$_} = "IGNORE" for @signals;
  kill "KILL", $idle;
  exec "/bin/sh", $job, $dir, "end", $code, $told;
'

windlass_shell=${SHELL:-/bin/sh}
case ${2-} in
run)
  . "$1/request"
  run "$1"
  ;;
end) windlass_end "$1" "$3" "$4" ;;
esac
# The fence (decision 41): whoever comes second, as the job was started again or the submission was withdrawn, runs
# nothing. One that was started again leaves a note of that: it was ended from outside, if it had not ended.
if ! mv "$1/go" "$1/begun" 2>/dev/null; then
  if [ -e "$1/begun" ]; then true >"$1/again"; fi
  exit 0
fi
# Sets windlass_cwd and defines run. Standard input is the job's: nothing, or what --input names.
. "$1/request"
cd "$windlass_cwd" 2>/dev/null || windlass_end "$1" cwd ''
if perl -e 1 2>/dev/null; then
  eval "$windlass_functions"
  exec perl -e "$windlass_relay" "$0" "$1"
fi
# TERM tells that the batch system ends the job.
windlass_told=
trap 'windlass_told=.t' TERM
trap : HUP INT QUIT USR1 USR2 XCPU
(run "$1")
windlass_end "$1" $? "$windlass_told"
