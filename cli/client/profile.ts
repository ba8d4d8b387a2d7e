import { chmod, mkdir, readFile, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CommandError, errnoOf } from '../command-error.ts';
import { writeAtomically } from '../write-atomically.ts';

/** What `windlass login` keeps: where the service is, and a token of its user. */
export interface Profile {
  url: string;
  token: string;
  /** The token's id, where `windlass login` made it. */
  tokenId?: string;
  username: string;
}

type Environment = Record<string, string | undefined>;

/** $XDG_CONFIG_HOME/windlass/login.json, by the XDG Base Directory Specification. */
function profilePath(environment: Environment): string {
  const { XDG_CONFIG_HOME, HOME } = environment;
  // "If an implementation encounters a relative path in any of these variables it should consider the path invalid."
  const folder = XDG_CONFIG_HOME?.startsWith('/')
    ? XDG_CONFIG_HOME
    : join(HOME ?? homedir(), '.config');
  return join(folder, 'windlass', 'login.json');
}

export async function readProfile(environment: Environment): Promise<Profile | undefined> {
  const path = profilePath(environment);
  try {
    const { url, token, tokenId, username } = JSON.parse(await readFile(path, 'utf8')) as Profile;
    return { url, token, tokenId, username };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw new CommandError(`${path} cannot be read.`, {
      hint: 'Log in again: windlass login URL.',
      cause: error,
    });
  }
}

/** Only this user can read it. */
export async function writeProfile(environment: Environment, profile: Profile): Promise<string> {
  const path = profilePath(environment);
  const folder = join(path, '..');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  await writeAtomically(path, JSON.stringify(profile, undefined, 2));
  return path;
}

export async function removeProfile(environment: Environment): Promise<void> {
  await rm(profilePath(environment), { force: true });
}
