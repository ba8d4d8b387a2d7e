# The end of each batch job's script, run on the job's first node with the directory of its submission as argument.
# Variables set before the command have names that no account exports, because the command would see those.
# Before it stands what keeps the account's functions in $windlass_functions, and drops them: they are for the command.
# shellcheck shell=sh disable=SC1091,SC2016,SC2034,SC2094,SC2154

# windlass_end DIRECTORY CODE TOLD [LOST_OUT LOST_ERR]: records how it ended. The record counts what the files lack, too, so
# that its reader misses that.
windlass_end() {
  out=${4-0} err=${5-0}
  if [ -e "$1/out" ]; then out=$((out + $(wc -c <"$1/out"))); fi
  if [ -e "$1/err" ]; then err=$((err + $(wc -c <"$1/err"))); fi
  mv "$1/spare" "$1/end.$2.$out.$err$3"
  case $2 in
  cwd) exit 1 ;;
  *) exit "$2" ;;
  esac
}

# Runs `sh JOB DIRECTORY run`, then becomes `sh JOB DIRECTORY end CODE TOLD LOST_OUT LOST_ERR`. Copies both streams from pipes
# to their files: a program that opens /dev/stderr anew, as `tee /dev/stderr` does, would empty a file. Passes signals for
# this process alone, as by `--signal=B:USR1`, to the command. A signal for all processes also kills an idle child, and is
# not passed. A shell cannot do that: it defers signals while it waits, or misses its child's end.
windlass_relay='
  my ($job, $dir) = @ARGV;
  my ($told, $idle, $command) = ("", 0, 0);
  my @signals = qw(HUP INT QUIT ABRT ALRM USR1 USR2 XCPU TERM);
  my @streams = map { { file => $_, lost => 0 } } \*STDOUT, \*STDERR;
  # Those whose pipe has not ended.
  my @open = @streams;
  # 0 if the account may have no more processes, for ten seconds.
  sub start {
    my ($is_piped, @program) = @_;
    for (1 .. 100) {
      my $pid = fork;
      return $pid if $pid;
      if (defined $pid) {
        for (@streams) { !$is_piped or open $_->{file}, ">&", $_->{end} or exit 127 }
        exec @program;
        exit 127;
      }
      select undef, undef, undef, 0.1 if $_ < 100;
    }
    return 0;
  }
  # Writes to the file of a stream. Once that lacks something it gets nothing more, so that what it has is a beginning.
  sub store {
    my ($stream, $bytes) = @_;
    for (my $at = 0; $at < length $bytes; ) {
      my $written = $stream->{lost} ? 0 : syswrite $stream->{file}, $bytes, 65536, $at;
      if ($written) { $at += $written }
      elsif ($stream->{lost} || $! != 4) {
        $stream->{lost} += length($bytes) - $at;
        return;
      }
    }
  }
  # Copies once from each pipe that has something within these seconds. Returns the bytes; none also where a signal comes.
  sub copy {
    my ($ready, $copied) = ("", 0);
    vec($ready, fileno $_->{pipe}, 1) = 1 for @open;
    return 0 if select($ready, undef, undef, $_[0]) < 1;
    my @ready = grep { vec $ready, fileno $_->{pipe}, 1 } @open;
    for my $stream (@ready) {
      my $length = sysread $stream->{pipe}, my $bytes, 65536;
      next if !defined $length;
      @open = grep { $_ != $stream } @open if !$length;
      store($stream, $bytes);
      $copied += $length;
    }
    return $copied;
  }
  # Copies what the pipes hold, a MiB each at most: anything beyond that was written meanwhile.
  sub drain {
    for (my $room = 2 << 20; $room > 0; ) { $room -= copy(0) || last }
  }
  for my $signal (@signals) {
    $SIG{$signal} = sub {
      local ($?, $!);
      $told = ".t" if $signal eq "TERM";
      select undef, undef, undef, 0.2;
      if (!$idle || waitpid($idle, 1) != 0) { $idle = start(0, "sleep", "2147483647") }
      elsif ($command) { kill $signal, $command }
    };
  }
  # A child that ends wakes this process, and a write beyond the limit of a file fails.
  $SIG{$_} = sub { } for "CHLD", "XFSZ";
  if (2 == grep { pipe $_->{pipe}, $_->{end} } @streams) {
    # PERL_UNICODE may have given them layers, which take no bytes.
    for (@streams) { binmode $_->{file}; binmode $_->{pipe} }
    $idle = start(0, "sleep", "2147483647");
    $command = start(1, "/bin/sh", $job, $dir, "run") if $idle;
  }
  if (!$command) {
    print STDERR "windlass: the node cannot start the command: $!\n";
    kill "KILL", $idle if $idle;
    # Without a process of another program. 126 is the status of a shell that cannot run a command.
    my ($out, $err) = map { (-s "$dir/$_") || 0 } "out", "err";
    rename "$dir/spare", "$dir/end.126.$out.$err$told";
    exit 126;
  }
  close $_->{end} for @streams;
  # Perl acts on signals between its steps: one that comes just before a wait does not end it, so a wait is a second long.
  until ((my $pid = waitpid $command, @open ? 1 : 0) == $command) {
    last if $pid < 0 && $! != 4;
    copy(1) if @open;
  }
  my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
  # A batch system that ends a job signals one process after the other: the command may have ended before this one.
  $command = 0;
  for (1 .. 5) {
    # Not until the pipes end: something that the command started may go on.
    drain();
    select undef, undef, undef, 0.1 unless $told;
  }
  drain();
  $SIG{$_} = "IGNORE" for @signals;
  kill "KILL", $idle;
  exec "/bin/sh", $job, $dir, "end", $code, $told, map { $_->{lost} } @streams;
'

# windlass_copy DIRECTORY STREAM: where there is no Perl, copies the stream from its pipe, then removes that. Renames it if the
# file cannot take all, and reads on.
windlass_copy() {
  trap '' HUP INT QUIT USR1 USR2 XCPU XFSZ TERM
  { cat || { mv "$1/pipe.$2" "$1/lost.$2" && cat >/dev/null; }; } <"$1/pipe.$2" 2>/dev/null
  rm -f "$1/pipe.$2"
}

# windlass_await_copies DIRECTORY: until both have ended, or a second adds nothing: something that the command started may go
# on, and keep a pipe open.
windlass_await_copies() {
  for look in 1 2 3 4 5 6 7 8 9 10; do
    if [ ! -e "$1/pipe.out" ] && [ ! -e "$1/pipe.err" ]; then return; fi
    before=${bytes-}
    bytes=$(wc -c "$1/out" "$1/err")
    if [ -n "$bytes" ] && [ "$bytes" = "$before" ]; then return; fi
    sleep 1
  done
}

windlass_shell=${SHELL:-/bin/sh}
case ${2-} in
run)
  . "$1/request"
  run "$1"
  ;;
end) windlass_end "$1" "$3" "$4" "$5" "$6" ;;
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
if mkfifo "$1/pipe.out" "$1/pipe.err" 2>/dev/null; then
  windlass_copy "$1" out &
  windlass_copy "$1" err >&2 &
  (run "$1") >"$1/pipe.out" 2>"$1/pipe.err"
  windlass_code=$?
  windlass_await_copies "$1"
else
  (run "$1")
  windlass_code=$?
fi
# How much a file lacks is not known: one byte at least.
[ ! -e "$1/lost.out" ]
windlass_lost=$?
[ ! -e "$1/lost.err" ]
windlass_end "$1" "$windlass_code" "$windlass_told" "$windlass_lost" $?
