import { readdirSync, readFileSync } from 'node:fs';

/** Processes of the service, by how their command line begins. */
const ROLES = {
  API: 'windlass-api',
  worker: 'windlass-worker',
  parser: 'windlass-child-parse',
} as const;
export type Role = keyof typeof ROLES;
const NAMES = Object.keys(ROLES) as Role[];

const LOOK_EVERY_MS = 100;

/**
 * Watches the peak memory, in bytes (proc(5), VmHWM), of this machine's processes of each role; of a process that
 * ended, the last value seen.
 */
export function watchPeaks(): { stop(): Record<Role, number> } {
  const peaks: Record<Role, number> = { API: 0, worker: 0, parser: 0 };
  const look = () => {
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      const role = NAMES.find(name => read(pid, 'cmdline').startsWith(ROLES[name]));
      if (!role) continue;
      const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(read(pid, 'status'))?.[1];
      peaks[role] = Math.max(peaks[role], Number(kilobytes ?? 0) * 1_024);
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  return {
    stop() {
      look();
      clearInterval(timer);
      return peaks;
    },
  };
}

/** Empty where the process has ended. */
function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
