import { type ExecFileException, execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../../../scripts/programs.ts';
import { signalProcess } from '../../../servers/processes.ts';
import { isProcessAlive, makeTempDir } from '../files/temp-dir.ts';
import { waitFor } from '../wait-for.ts';

export type ShellName = 'bash' | 'dash' | 'busybox' | 'ksh' | 'zsh' | 'tcsh' | 'csh' | 'fish';

export interface Account {
  username: string;
  uid: number;
  password: string;
  /** The login shell's path. */
  shell: string;
  /** Holds what /etc/skel has, and nothing else. */
  home: string;
  /** Ends the account's processes and removes it with its home. */
  remove(): Promise<void>;
}

const PREFIX = 'windlass-t-';
let made = 0;

/** Makes a throwaway Unix account. Needs root: see missingRoot(). */
export async function makeAccount(options: { shell?: ShellName } = {}): Promise<Account> {
  const directory = makeTempDir('account');
  const username = `${PREFIX}${process.pid}-${++made}`;
  const password = randomBytes(12).toString('base64url');
  const home = join(directory.path, 'home');
  const shell = placeShell(options.shell ?? 'bash', directory.path);
  try {
    await runAlone('useradd', ['--create-home', '--home-dir', home, '--shell', shell, username]);
    await runAlone('chpasswd', [], `${username}:${password}\n`);
  } catch (error) {
    await removeAccount(username).catch(() => {});
    directory.remove();
    throw error;
  }
  const uid = statSync(home).uid;
  return {
    username,
    uid,
    password,
    shell,
    home,
    async remove() {
      await endProcessesOf(uid);
      await removeAccount(username);
      directory.remove();
    },
  };
}

/** A login shell is known by the name it is called by, so busybox is called `sh`. */
function placeShell(name: ShellName, directory: string): string {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`There is no ${name}; see missingPrograms().`);
  if (name !== 'busybox') return program;
  const link = join(directory, 'sh');
  symlinkSync(program, link);
  return link;
}

/** Removes the accounts of test runs that were killed. Their homes are the temporary folders' sweep's. */
export async function sweepAccounts(): Promise<void> {
  if (process.getuid?.() !== 0) return;
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [username = '', , uid] = line.split(':');
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(username)?.[1];
    if (pid === undefined || isProcessAlive(Number(pid))) continue;
    await endProcessesOf(Number(uid));
    await removeAccount(username);
  }
}

async function removeAccount(username: string): Promise<void> {
  await runAlone('userdel', ['--force', username]);
}

async function endProcessesOf(uid: number): Promise<void> {
  await waitFor(
    () => {
      const pids = findProcessesOf(uid);
      for (const pid of pids) signalProcess(pid, 'SIGKILL');
      return pids.length === 0;
    },
    { what: `the processes of user ${uid} to end` },
  );
}

function findProcessesOf(uid: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      try {
        return pid > 0 && statSync(`/proc/${pid}`).uid === uid && !isZombie(pid);
      } catch {
        return false;
      }
    });
}

function isZombie(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
}

/** The account tools lock their files and give up when another, of a parallel test, holds them. */
async function runAlone(program: string, args: string[], input = ''): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { error, stderr } = await run(program, args, input);
    if (error === null) return;
    const isBusy = /lock|try again/i.test(stderr);
    if (!isBusy || attempt === 50)
      throw new Error(`${program} failed: ${stderr}`, { cause: error });
    await delay(100);
  }
}

function run(
  program: string,
  args: string[],
  input: string,
): Promise<{ error: ExecFileException | null; stderr: string }> {
  const path = findProgram(program) ?? program;
  return new Promise(settle => {
    const child = execFile(path, args, (error, _stdout, stderr) => settle({ error, stderr }));
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}
