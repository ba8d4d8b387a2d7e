import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findDecoderUser, type SystemUser } from '../../shared/process/system-users.ts';

const run = promisify(execFile);

/** What programs that read files of others may use; see docs/security.md. */
interface Confinement {
  /** Resident memory. watchMemory() ends the program; the kernel refuses addresses far beyond it. */
  memory: number;
  /** Processor time of all its threads together. */
  processorSeconds: number;
  /** The largest file that it may write. */
  fileBytes: number;
}

/** What isolates such programs from the machine, as far as this one permits. */
export interface Isolation {
  /** Programs that replace themselves by the next one of the command line. */
  prefix: string[];
  /** Another user than this process's: what the program reads and writes must be that user's. */
  user: SystemUser | undefined;
  /** In a network namespace of its own, which has no network. */
  hasNetwork: boolean;
}

/** V8, DuckDB and ffmpeg reserve addresses that they never use. */
const UNUSED_ADDRESSES = 6 * 2 ** 30;
const OPEN_FILES = 256;
const PATH = process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin';

/**
 * A program that talks with nobody would outlive its worker. Comes last, because a change of user clears it; util-linux
 * has it, busybox has not.
 */
const DIE_WITH_WORKER = ['setpriv', '--pdeathsig', 'KILL', '--'];

let found: Promise<Isolation> | undefined;

/** Looks once what this machine permits. */
export function findIsolation(): Promise<Isolation> {
  found ??= tryIsolations();
  return found;
}

async function tryIsolations(): Promise<Isolation> {
  const isRoot = process.geteuid?.() === 0;
  const user = isRoot ? findDecoderUser() : undefined;
  const setpriv = user && [
    ...['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'],
    ...['--no-new-privs', '--'],
  ];
  const unshare = ['unshare', ...(isRoot ? [] : ['--user']), '--net', '--'];
  const ways: Isolation[] = [
    ...(setpriv ? [{ prefix: [...unshare, ...setpriv], user, hasNetwork: false }] : []),
    ...(setpriv ? [{ prefix: setpriv, user, hasNetwork: true }] : []),
    { prefix: unshare, user: undefined, hasNetwork: false },
  ];
  const none: Isolation = { prefix: [], user: undefined, hasNetwork: true };
  const dying = (way: Isolation) => ({ ...way, prefix: [...way.prefix, ...DIE_WITH_WORKER] });
  for (const way of [...ways.flatMap(each => [dying(each), each]), dying(none)])
    if (await works(way.prefix)) return way;
  return none;
}

/** As the other user, the programs and their directories must be readable too. */
async function works(prefix: string[]): Promise<boolean> {
  const [program = '', ...args] = prefix;
  const check = 'test -x "$1" && test -r "$2"';
  const files = [process.execPath, fileURLToPath(import.meta.url)];
  return run(program, [...args, '/bin/sh', '-c', check, 'sh', ...files], {
    cwd: '/',
    env: { PATH },
  })
    .then(() => true)
    .catch(() => false);
}

/** The command line for a program within these limits, without this process's environment. Node cannot set limits. */
export function confine(
  command: readonly string[],
  limits: Confinement,
  { isolation, env = {} }: { isolation: Isolation; env?: Record<string, string> },
): [string, ...string[]] {
  const given = Object.entries({ PATH, LC_ALL: 'C', ...env });
  return [
    ...(['/bin/sh', '-c', `${limitScript(limits)}; exec "$@"`, 'sh'] as const),
    ...isolation.prefix,
    ...['/usr/bin/env', '-i', ...given.map(([name, value]) => `${name}=${value}`)],
    ...command,
  ];
}

/**
 * A command for sh that limits its process and children. ulimit counts memory in KiB and files in blocks of 512 bytes.
 * A lower existing limit stays; what the system cannot limit is skipped.
 */
export function limitScript({ memory, processorSeconds, fileBytes }: Confinement): string {
  const limits = {
    v: Math.ceil((memory + UNUSED_ADDRESSES) / 1024),
    t: Math.ceil(processorSeconds),
    f: Math.ceil(fileBytes / 512),
    n: OPEN_FILES,
    c: 0,
  };
  const commands = Object.entries(limits).map(([name, value]) => `ulimit -${name} ${value}`);
  return `{ ${commands.join('; ')}; } 2>/dev/null`;
}
