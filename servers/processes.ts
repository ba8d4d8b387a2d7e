import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessEntry {
  pid: number;
  ppid: number;
  /** The command line as it is now; programs rewrite it (process.title). Empty for a zombie. */
  command: string;
}

/** Every process of this machine that can be seen: from /proc, else from ps. */
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
    // The name in parentheses may hold spaces and parentheses itself.
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

/** All that descends from one of these processes, parents before children; without themselves. */
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

/** The environment that a process was started with, or an empty one where that may not be read (Linux only). */
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

/** Sends a signal; false when there is no such process any more. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Resolves with how a child ended, at once when it has. */
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

/** TERM, after `graceMs` KILL; resolves when the child has ended. */
export async function endChild(child: ChildProcess, graceMs: number): Promise<void> {
  const ended = awaitExit(child);
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await ended;
  clearTimeout(timer);
}

/**
 * Ends a child when this process dies, however it dies: a small shell that holds a pipe from here
 * ends the child (TERM, 1 s later KILL) once that pipe closes.
 */
export function endWithThisProcess(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const wait = 'trap "" INT TERM HUP; read -r _; kill -TERM $0 && sleep 1 && kill -KILL $0';
  // A group of its own: Ctrl-C at a terminal must not reach it.
  const guard = spawn('/bin/sh', ['-c', wait, String(child.pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  // Killed, it cannot end a stranger that was given the child's pid.
  child.once('exit', () => guard.kill('SIGKILL'));
}
