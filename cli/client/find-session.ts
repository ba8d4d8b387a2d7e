import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { unwrap } from '../../clients/typescript/src/api.ts';
import { WindlassError } from '../../clients/typescript/src/error.ts';
import type { Challenge } from '../../clients/typescript/src/login.ts';
import type { Session, SessionRecord } from '../../clients/typescript/src/session.ts';
import type { Windlass } from '../../clients/typescript/src/windlass.ts';
import { nearestWord } from '../../shared/nearest-word.ts';
import { CommandError, reasonOf } from '../command-error.ts';
import { printNotice } from '../output/print-notice.ts';
import { printable } from '../output/printable.ts';
import { ask } from '../terminal.ts';
import { readOwnSessions, rememberSession } from './own-sessions.ts';
import { readPages } from './read-pages.ts';

export interface LoginChoice {
  /** The account on the host. */
  user?: string;
  /** A file with a private key. */
  key?: string;
  /** The account and the file with a private key for the jump host, where it takes another login. */
  jumpUser?: string;
  jumpKey?: string;
  /** When start-up files are read there. */
  startup?: SessionRecord['startup'];
}

/**
 * The open session of that host and user, preferably one that this program opened; where there is none a new one, for which the
 * terminal is asked. Without a user, the session of the only account that has one, or a new one for the user of this process.
 */
export async function findOrOpenSession(
  windlass: Windlass,
  host: string,
  { user, key, jumpUser, jumpKey, startup }: LoginChoice,
): Promise<Session> {
  const there = (await listSessions(windlass)).filter(
    session =>
      session.hostname === host &&
      (user === undefined || session.username === user) &&
      // Who has not answered the host yet is not logged in.
      session.state !== 'challenge',
  );
  requireOneAccount(there);
  const [logged] = there;
  if (logged && user === undefined) tellAccount(logged);
  const [present] = there
    .filter(session => startup === undefined || session.startup === startup)
    .sort(bestFirst(await readOwnSessions(process.env)));
  if (present?.state === 'open') return windlass.session(present.sid);
  // Nobody types a password for what is not there.
  if (!logged) await requireHost(windlass, host);
  const username = logged?.username ?? user ?? userInfo().username;
  const credential = {
    ...(await readCredential({ host, username, key })),
    ...((jumpUser ?? jumpKey) && { jump: await readJump({ host, username, jumpUser, jumpKey }) }),
  };
  const answer = (challenge: Challenge) => answerPrompts(challenge);
  if (present?.state === 'reconnect') {
    // Its queued jobs wait for this.
    const session = windlass.session(present.sid);
    await session.login({ ...credential, answer });
    return session;
  }
  const opened = await windlass.open(host, { username, ...credential, startup, answer });
  await rememberSession(process.env, opened.sid);
  return opened;
}

/** A command for one account must not run as another one, such as root. */
function requireOneAccount(sessions: SessionRecord[]): void {
  const accounts = [...new Set(sessions.map(({ username }) => username))].sort();
  if (accounts.length < 2) return;
  throw new CommandError(
    `You are logged in to ${sessions[0]?.hostname} as ${accounts.join(' and as ')}.`,
    { hint: `Say as whom it is done, such as --user ${accounts[0]}.` },
  );
}

/** Tells a person the account on the host, where it differs from their name here. */
function tellAccount({ username, hostname }: SessionRecord): void {
  if (process.stderr.isTTY && username !== userInfo().username)
    printNotice(`as ${username} on ${hostname}`);
}

async function requireHost({ api }: Windlass, name: string): Promise<void> {
  try {
    await unwrap(api.GET('/api/hosts/{name}', { params: { path: { name } } }));
  } catch (error) {
    if (!(error instanceof WindlassError) || error.status !== 404) throw error;
    const [, user, host] = /^([^@]+)@(.+)$/.exec(name) ?? [];
    if (user !== undefined)
      throw new CommandError(`There is no host ${name}.`, {
        hint: `Say as whom by an option: ${host} --user ${user}.`,
      });
    const hosts = await readPages(query => unwrap(api.GET('/api/hosts', { params: { query } })));
    const meant = nearestWord(
      name,
      hosts.map(host => host.name),
    );
    throw new CommandError(`There is no host ${name}.`, {
      hint: meant ? `Did you mean ${meant}?` : 'See: windlass host list.',
    });
  }
}

/** The user's open sessions. */
export function listSessions({ api }: Windlass): Promise<SessionRecord[]> {
  return readPages(query => unwrap(api.GET('/api/remotes', { params: { query } })));
}

/**
 * Open sessions come first: a new login may need a person with a code. Then those that this program opened: another program may
 * end its own, and with it the work there.
 */
const bestFirst = (own: string[]) => (a: SessionRecord, b: SessionRecord) =>
  Number(b.state === 'open') - Number(a.state === 'open') ||
  Number(own.includes(b.sid)) - Number(own.includes(a.sid)) ||
  b.accessed.localeCompare(a.accessed);

/** Reads the login for the jump host: that of the same account name, unless another one is given. */
async function readJump(at: {
  host: string;
  username: string;
  jumpUser?: string;
  jumpKey?: string;
}) {
  const { jumpUser: username = at.username, jumpKey: key } = at;
  const host = `the jump host of ${at.host}`;
  return { username, ...(await readCredential({ host, username, key, option: '--jump-key' })) };
}

async function readCredential({
  host,
  username,
  key,
  option = '--key',
}: {
  host: string;
  username: string;
  key: string | undefined;
  option?: string;
}): Promise<{ password?: string; privateKey?: string; passphrase?: string }> {
  if (key === undefined) {
    const password = await ask(`Password of ${username} on ${host} (none: just Enter): `, {
      echo: false,
      instead: `Give ${option} FILE, or open the session in a terminal first.`,
    });
    return password ? { password } : {};
  }
  const privateKey = await readFile(key, 'utf8').catch((cause: unknown) => {
    throw new CommandError(`The key ${key} cannot be read: ${reasonOf(cause)}.`, {
      hint: `Check ${option}.`,
      cause,
    });
  });
  if (isPublic(privateKey)) {
    const other = key.endsWith('.pub') ? `: ${option} ${key.slice(0, -4)}` : '';
    throw new CommandError(`${key} holds a public key.`, { hint: `Give the private one${other}.` });
  }
  if (!isEncrypted(privateKey)) return { privateKey };
  const passphrase = await ask(`Passphrase of ${key}: `, {
    echo: false,
    instead: 'Give a key without a passphrase.',
  });
  return { privateKey, passphrase };
}

/** Whether it is a line of authorized_keys, a certificate, or a block that says that it is public. */
const isPublic = (text: string) =>
  /^\s*(ssh|ecdsa|sk)-\S+ AAAA/.test(text) || /BEGIN [\w ]*PUBLIC KEY/.test(text);

/** PEM says it in a header (RFC 1421); OpenSSH's own format names the cipher at its beginning, `none` where there is none. */
function isEncrypted(privateKey: string): boolean {
  if (/ENCRYPTED/.test(privateKey)) return true;
  const body = /-----BEGIN OPENSSH PRIVATE KEY-----\s*([\w+/=\s]+)/.exec(privateKey)?.[1];
  if (body === undefined) return false;
  const bytes = Buffer.from(body.slice(0, 64), 'base64').toString('latin1');
  return (
    bytes.startsWith('openssh-key-v1\0') && !bytes.startsWith('openssh-key-v1\0\0\0\0\x04none')
  );
}

async function answerPrompts({ instruction, prompts }: Challenge): Promise<string[]> {
  for (const line of instruction.split(/\r?\n/).filter(Boolean))
    process.stderr.write(`${printable(line)}\n`);
  const answers: string[] = [];
  for (const { text, echo } of prompts)
    answers.push(await ask(printable(text), { echo, instead: 'Open the session in a terminal.' }));
  return answers;
}
