import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { writeAtomically } from '../write-atomically.ts';

type Environment = Record<string, string | undefined>;

/** The latest that are remembered; older ones are as those of other programs. */
const MAX = 100;

/** $XDG_STATE_HOME/windlass/sessions.json, by the XDG Base Directory Specification: see profile.ts. */
function pathOf({ XDG_STATE_HOME, HOME }: Environment): string {
  const folder = XDG_STATE_HOME?.startsWith('/')
    ? XDG_STATE_HOME
    : join(HOME ?? homedir(), '.local/state');
  return join(folder, 'windlass/sessions.json');
}

/** The sessions that this program opened, which no other program ends with its own work. */
export async function readOwnSessions(environment: Environment): Promise<string[]> {
  try {
    const sids: unknown = JSON.parse(await readFile(pathOf(environment), 'utf8'));
    return Array.isArray(sids) ? sids.map(String) : [];
  } catch {
    return [];
  }
}

/** Where that cannot be written, the session is as that of another program. */
export async function rememberSession(environment: Environment, sid: string): Promise<void> {
  const path = pathOf(environment);
  const sids = [...(await readOwnSessions(environment)), sid].slice(-MAX);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    .then(() => writeAtomically(path, JSON.stringify(sids)))
    .catch(() => {});
}
