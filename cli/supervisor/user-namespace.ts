import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { findDecoderUser } from '../../shared/process/system-users.ts';
import { readShellScript } from '../read-shell-script.ts';

/**
 * A user namespace in which this account is root, and which has no user but it and the decoders'. So a process may
 * become the decoders' user, give it files and end its processes, and has no other right of root. Linux.
 */
export interface UserNamespace {
  uid: number;
  gid: number;
  /** Another group that the account is in. */
  group?: number | undefined;
}

/** What a worker needs to run decoders, and to use their files. */
const CAPABILITIES = [
  ...['chown', 'dac_override', 'fowner', 'kill', 'setgid', 'setuid'],
  // A network that has nothing in it.
  'sys_admin',
  // The memory of a decoder, where /proc hides the processes of other users.
  'sys_ptrace',
];
/** The descriptor after that of the IPC channel. */
const ASKING = 4;

/** Starts a program in a namespace of its own. A few programs replace one another in the process that is returned. */
export function spawnInNamespace(
  command: readonly string[],
  namespace: UserNamespace,
  options: SpawnOptions & { stdio: unknown[] },
): ChildProcess {
  const { gid, group = gid } = namespace;
  const kept = CAPABILITIES.map(name => `+${name}`);
  const child = spawn(
    'unshare',
    [
      // Rights in the namespace, with which the script becomes the account: until then its user is unknown there.
      ...['--user', '--keep-caps', '--'],
      ...['/bin/sh', '-c', readShellScript(new URL('./enter-namespace.sh', import.meta.url)), 'sh'],
      ...['setpriv', '--reuid=0', '--regid=0'],
      ...[group === gid ? '--clear-groups' : `--groups=${group}`, '--no-new-privs'],
      ...['--inh-caps=-all', '--ambient-caps=-all', `--bounding-set=-all,${kept}`, '--'],
      ...command,
    ],
    { ...options, stdio: [...options.stdio, 'pipe'] } as SpawnOptions,
  );
  const asking = child.stdio[ASKING] as Duplex | null;
  // It also fails where the process ended meanwhile, which is reported as its end.
  asking?.on('error', () => {});
  asking?.once('data', () => {
    try {
      giveUsers(child.pid ?? 0, namespace);
      asking.end('\n');
    } catch {
      asking.destroy();
    }
  });
  return child;
}

/** Lines of: the id in the namespace, the id outside of it, how many. */
function giveUsers(pid: number, { uid, gid, group = gid }: UserNamespace): void {
  const decoder = findDecoderUser();
  const others = (ids: (number | undefined)[]) =>
    ids.flatMap(id => (id === undefined ? [] : [`${id} ${id} 1\n`])).join('');
  writeFileSync(`/proc/${pid}/uid_map`, `0 ${uid} 1\n${others([decoder?.uid])}`);
  const groups = others([decoder?.gid, group === gid ? undefined : group]);
  writeFileSync(`/proc/${pid}/gid_map`, `0 ${gid} 1\n${groups}`);
}
