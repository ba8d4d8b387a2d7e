import { WindlassError } from '../../shared/errors/errors.ts';
import type { Startup } from '../../shared/ssh/startup-files.ts';
import { harmless } from '../ssh/host-words.ts';
import { type AgentFile, loadAgentFile } from './agent-file.ts';
import { AgentClient } from './client.ts';
import type { RemoteExec } from './exec-channel.ts';
import { LineReader } from './line-reader.ts';
import { NO_FUNCTIONS } from './no-functions.ts';
import {
  type Hello,
  parseHello,
  ShellTimeout,
  toPrintError,
  toStartupError,
  toUnusableError,
} from './protocol/hello.ts';

export interface OpenAgentOptions {
  signal?: AbortSignal;
  /** For the whole of the opening, in milliseconds. */
  timeoutMs: number;
  /** The most unacknowledged output of one run on the host, in bytes; half the free space if that is less. */
  spoolLimitBytes: number;
  /** `each` keeps the environment of the login for runs that begin with it. Default: `once`. */
  startup?: Startup;
  /** `hello.shell` of an earlier opening for this account: saves the probe while the agent's file exists. */
  shell?: string;
}

/**
 * Opens the host's agent; installs its file if that is missing or damaged. Throws `startup_files_print`,
 * `shell_unusable`, `host_unsupported`, `agent_startup_failed`, `remote_connection_failed` (a time-out has the cause
 * ShellTimeout), what `remote.exec` throws, or the signal's reason.
 */
export async function openAgent(
  remote: RemoteExec,
  options: OpenAgentOptions,
): Promise<AgentClient> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  const foreign: Foreign = { text: '' };
  try {
    let { shell } = options;
    // Installs twice at most: another version's sweep may remove the file before a serve marks it as in use.
    for (let tries = 0; tries <= 2; tries++) {
      if (tries > 0) shell = await installAgent(remote, loadAgentFile(), { signal, foreign });
      const client = shell && (await startServe(remote, { ...options, signal, foreign, shell }));
      if (client) return client;
    }
    throw toStartupError(`${shell} ended before it could read the agent.`);
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    if (!timeout.aborted) throw error;
    throw new WindlassError('remote_connection_failed', {
      detail: `the agent did not answer within ${options.timeoutMs} ms.`,
      cause: new ShellTimeout(options.timeoutMs, foreign.text),
    });
  }
}

/** What the account's shell wrote instead of the expected line. */
interface Foreign {
  text: string;
}

/** A shell that has written so much before the expected line will not write it. */
const MAX_FOREIGN = 65_536;

/** With fewer descriptors sh cannot redirect, as it keeps what it redirects above the ninth. */
const FEW_FILES = 16;

/** Installs the agent's file unless it is on the host and whole; returns the account's own shell. */
async function installAgent(
  remote: RemoteExec,
  file: AgentFile,
  { signal, foreign }: { signal: AbortSignal; foreign: Foreign },
): Promise<string> {
  const channel = await remote.exec(probeCommand(file), signal);
  const lines = new LineReader(channel, signal);
  try {
    const answer = await expectLine(lines, 'windlass-probe ', foreign);
    const [state, ...shell] = answer.split(' ');
    if (state === 'need') {
      channel.stdin.end(file.content);
      const stored = await expectLine(lines, 'windlass-stored ', foreign);
      if (stored !== 'ok')
        throw toStartupError(`cannot write the agent's file: ${stored || 'it arrived damaged.'}`);
    }
    return usableShell(shell.join(' '));
  } finally {
    lines.detach();
    channel.destroy();
  }
}

/** The account's shell where that is a path that the database takes and people can read; else that of every host. */
const usableShell = (said: string) =>
  said.startsWith('/') && harmless(said) === said ? said : '/bin/sh';

/** Undefined if the agent's file is missing: the shell ended without a hello. */
async function startServe(
  remote: RemoteExec,
  options: OpenAgentOptions & { shell: string; signal: AbortSignal; foreign: Foreign },
): Promise<AgentClient | undefined> {
  const file = loadAgentFile();
  const channel = await remote.exec(serveCommand(file, options), options.signal);
  const lines = new LineReader(channel, options.signal);
  let hello: Hello | undefined;
  try {
    const line = await lines.next();
    if (line === undefined) return undefined;
    const prefix = 'windlass-agent ';
    if (!(await isExpected(lines, line, { prefix, foreign: options.foreign }))) return undefined;
    hello = parseHello(line, options.shell);
  } finally {
    lines.detach();
    if (!hello) channel.destroy();
  }
  return new AgentClient(channel, hello);
}

async function expectLine(lines: LineReader, prefix: string, foreign: Foreign): Promise<string> {
  const line = await lines.next();
  if (line === undefined) throw toUnusableError('ended before any command', lines.errorText());
  if (await isExpected(lines, line, { prefix, foreign })) return line.slice(prefix.length);
  throw toUnusableError('ran no command', `${foreign.text}${lines.errorText()}`);
}

/**
 * Whether the first line begins as expected. Throws `startup_files_print` if the expected line comes later, after what
 * start-up files printed.
 */
async function isExpected(
  lines: LineReader,
  first: string,
  { prefix, foreign }: { prefix: string; foreign: Foreign },
): Promise<boolean> {
  if (first.startsWith(prefix)) return true;
  foreign.text = '';
  let line: string | undefined = first;
  let length = 0;
  while (line !== undefined && length < MAX_FOREIGN) {
    if (line.includes(prefix)) throw toPrintError(first);
    length += line.length + 1;
    foreign.text = `${foreign.text}${line}\n`.slice(0, 1_000);
    line = await lines.next();
  }
  return false;
}

/**
 * Prints `windlass-probe have|need SHELL`; after `need` it stores its standard input and prints `windlass-stored ok` or
 * the error. sh, csh, tcsh, fish and zsh must all parse it: no `!`, backslash, newline or inner single quote. The PID
 * in the temporary name keeps concurrent installers apart.
 */
function probeCommand({ name, content, checksum }: AgentFile): string {
  const script = [
    NO_FUNCTIONS,
    'umask 077',
    'D="$HOME/.windlass"',
    `F="$D/${name}"`,
    `if test -f "$F" && ${check(checksum, content.length)}; then echo "windlass-probe have $SHELL"; exit; fi`,
    'echo "windlass-probe need $SHELL"',
    'A="$F"',
    'F="$D/new.$$"',
    `E=$( { mkdir -p "$D" && cat >"$F" && ${check(checksum, content.length)} && mv -f "$F" "$A"; } 2>&1 ) && echo "windlass-stored ok" && exit`,
    'rm -f "$F" 2>/dev/null',
    // Without a redirection, which needs a descriptor more than there may be.
    `N=$(ulimit -n); test "$N" = unlimited || test "$N" -ge ${FEW_FILES} || E="a process of the account may open only $N files (ulimit -n)."`,
    'echo "windlass-stored $E"',
  ];
  return `exec /bin/sh -c '${script.join('; ')}'`;
}

/** A condition of sh on the file $F: its checksum and size, or its size alone if the host has no cksum. */
function check(checksum: number, size: number): string {
  return `test "$( { cksum <"$F" || echo "${checksum} $(($(wc -c <"$F")))"; } 2>/dev/null )" = "${checksum} ${size}"`;
}

/**
 * A shell of the sh family runs the agent itself, so that commands inherit what its start-up files define, functions
 * too; others start /bin/sh. `-f` keeps zsh from reading .zshenv for each agent process.
 */
function serveCommand(
  { name }: AgentFile,
  { shell, spoolLimitBytes, startup = 'once' }: OpenAgentOptions & { shell: string },
): string {
  const family = /^\/[\w./+-]*\/(?:sh|dash|ash|bash|ksh|ksh93|mksh|zsh)$/;
  const interpreter = family.test(shell) ? shell : '/bin/sh';
  const flag = interpreter.endsWith('/zsh') ? ' -f' : '';
  const keep = startup === 'each' ? `${KEEP_LOGIN}; ` : '';
  return `${keep}exec ${interpreter}${flag} "$HOME/.windlass/${name}" serve ${spoolLimitBytes} ${startup} ${interpreter}${flag}`;
}

/**
 * /proc keeps the environment that a process was started with, whatever start-up files change. The agent takes the
 * login shell's place and PID, and finds the file by that.
 */
const KEEP_LOGIN = `/bin/sh -c '${[
  NO_FUNCTIONS,
  'umask 077',
  'exec 2>/dev/null',
  'read -r B </proc/sys/kernel/random/boot_id',
  'cat <"/proc/$PPID/environ" >"$HOME/.windlass/login.$B-$PPID"',
].join('; ')}'`;
