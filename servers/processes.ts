import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessEntry {
  pid: number;
  ppid: number;
  /** The current command line; programs can change it (process.title). */
  command: string;
}

/** All visible processes of this machine, without zombies: from /proc, otherwise from ps. */
export function listProcesses(): ProcessEntry[] {
  let names: string[];
  try {
    names = readdirSync('/proc').filter(name => /^\d+$/.test(name));
  } catch {
    names = [];
  }
  return names.length > 0 ? names.flatMap(readProcess) : listByPs();
}

function readProcess(name: string): ProcessEntry[] {
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    // The name in parentheses may contain spaces and parentheses.
    const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return [];
    const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0+/g, ' ').trim();
    return [{ pid: Number(name), ppid: Number(ppid), command }];
  } catch {
    return [];
  }
}

function listByPs(): ProcessEntry[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat=,command='], { encoding: 'utf8' });
  return lines.split('\n').flatMap(line => {
    const [, pid, ppid, state, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (!pid || !ppid || state?.startsWith('Z')) return [];
    return [{ pid: Number(pid), ppid: Number(ppid), command: command ?? '' }];
  });
}

/** The descendants of these processes, parents before children. */
export function findDescendants(roots: Iterable<number>, all = listProcesses()): ProcessEntry[] {
  const children = new Map<number, ProcessEntry[]>();
  for (const entry of all) {
    const siblings = children.get(entry.ppid);
    if (siblings) siblings.push(entry);
    else children.set(entry.ppid, [entry]);
  }
  const found: ProcessEntry[] = [];
  const seen = new Set(roots);
  for (const pid of seen) {
    for (const child of children.get(pid) ?? []) {
      if (seen.has(child.pid)) continue;
      seen.add(child.pid);
      found.push(child);
    }
  }
  return found;
}

/** The initial environment of a process; empty if it cannot be read. Linux only. */
export function readEnvironment(pid: number): Record<string, string> {
  try {
    const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    return Object.fromEntries(
      entries.filter(Boolean).map(entry => {
        const at = entry.indexOf('=');
        return [entry.slice(0, at), entry.slice(at + 1)];
      }),
    );
  } catch {
    return {};
  }
}

/** Sends a signal. False if the process does not exist. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Resolves when a child has ended. */
export function awaitExit(
  child: ChildProcess,
): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  }
  return new Promise(settle =>
    child.once('exit', (code, signal) => {
      settle({ code, signal });
    }),
  );
}

/** Sends SIGTERM, after `graceMs` SIGKILL. Resolves when the child has ended. */
export async function endChild(child: ChildProcess, graceMs: number): Promise<void> {
  const ended = awaitExit(child);
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await ended;
  clearTimeout(timer);
}

/**
 * Ends a child when this process dies for any reason: a shell reads a pipe from this process and signals the child
 * (TERM, 1 s later KILL) when the pipe closes.
 */
export function endWithThisProcess(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const wait = 'trap "" INT TERM HUP; read -r _; kill -TERM $0 && sleep 1 && kill -KILL $0';
  // A separate process group, which Ctrl-C at a terminal does not reach.
  const reaper = spawn('/bin/sh', ['-c', wait, String(child.pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  reaper.unref();
  // Otherwise it could signal another process that gets the child's pid.
  child.once('exit', () => reaper.kill('SIGKILL'));
}
