import type ssh2 from 'ssh2';
import type { HostRow } from '../../shared/database/schema.ts';
import { abortable } from '../../shared/process/abort.ts';
import type { Credential } from '../../shared/secrets/secrets.ts';
import type { SshAlgorithms } from '../../shared/ssh/algorithms.ts';
import { destinationDigest, hostChanged } from '../../shared/ssh/destination.ts';
import { type Hops, hostOf, lastOf } from '../../shared/ssh/hops.ts';
import type { Ask } from './authentication.ts';
import { dial } from './dial.ts';
import { dialThrough } from './dial-through.ts';
import { namingHop } from './hop-errors.ts';
import { CONNECTION_LIMITS, type Transport } from './limit-login.ts';
import { type Connection, logIn } from './log-in.ts';
import type { LoginGuard } from './login-refusals.ts';
import { resolveHost } from './resolve-host.ts';
import { SeenCertificates } from './trusted-keys.ts';

/** Logs in at the last of these hops when that may be tried, unless the signal is aborted. */
export type TryLogin = (
  hops: Hops,
  logIn: () => Promise<Connection>,
  signal: AbortSignal,
) => Promise<Connection>;

export const attemptAtOnce: TryLogin = (_hops, logIn) => logIn();

/** Runs a login as `account` at the last of these hops, if that is still allowed. */
export type Guard = (
  until: { hops: Hops; account: string },
  login: (guard: LoginGuard) => Promise<Connection>,
) => Promise<Connection>;

export interface Target {
  hops: Hops;
  username: string;
  credential: Credential;
  /** Where the credential may be sent. */
  destination: string;
  /** Answers what a host asks for besides the credential. */
  ask?: Ask;
  attempt?: TryLogin;
  guard?: Guard;
  limits?: typeof CONNECTION_LIMITS;
  algorithms?: SshAlgorithms;
  /** What hosts have shown before. */
  seen?: SeenCertificates;
}

/**
 * Logs in to a host through its jump hosts. No byte of a credential is sent before the host's key is verified, or to
 * another destination than it was sealed for. Throws `host_changed`, `host_not_allowed` and logIn()'s errors; with
 * several hosts the detail names the one.
 */
export async function connect(target: Target, signal: AbortSignal): Promise<Connection> {
  const {
    limits = CONNECTION_LIMITS,
    attempt = attemptAtOnce,
    ask,
    algorithms,
    guard,
    ...given
  } = target;
  const { seen = new SeenCertificates() } = given;
  // A copy: what is checked is what is connected to.
  const hops = structuredClone(target.hops);
  if (given.destination !== destinationDigest(hops)) throw hostChanged(hostOf(hops).name);
  const opened: Connection[] = [];
  try {
    for (const [index, login] of loginsFor(hops, given).entries()) {
      const until: Hops = [...hops.slice(0, index), login.host];
      const via = opened.at(-1)?.client;
      const run = async (guarded?: LoginGuard) => {
        const reach = await prepare(until, { via, connectMs: limits.connectMs }, signal);
        const asking = ask && askingAt(until, hops, pausing(ask, guarded));
        const { loginMs } = limits;
        const permit = guarded?.permit;
        return logIn(
          { ...login, hops: until, seen, reach, ask: asking, permit, loginMs, algorithms },
          signal,
        );
      };
      const { username: account } = login;
      const guarding = guard ? () => guard({ hops: until, account }, run) : () => run();
      const connection = await attempt(until, guarding, signal).catch(namingHop(until, hops));
      if (via) tie(via, connection.client);
      opened.push(connection);
    }
  } catch (error) {
    for (const { client } of opened) client.destroy();
    throw error;
  }
  const { client } = lastOf(opened);
  return { client, banner: opened.flatMap(({ banner }) => banner || []).join('\n') };
}

/**
 * How to connect to the last hop. Only an address that this worker itself connects to is resolved, and must not be
 * private.
 */
async function prepare(
  hops: Hops,
  { via, connectMs: timeoutMs }: { via: ssh2.Client | undefined; connectMs: number },
  signal: AbortSignal,
): Promise<() => Promise<Transport>> {
  const [host, jump] = [hostOf(hops), hops.at(-2)];
  const { port } = host;
  if (via && jump) {
    const at = { address: host.address, port, timeoutMs };
    return () => dialThrough({ client: via, name: jump.name }, at, signal);
  }
  const addresses = await abortable(resolveHost(host), signal);
  return () => dial({ addresses, port, timeoutMs }, signal);
}

interface HopLogin {
  host: HostRow;
  username: string;
  credential: Credential;
}

/** The login for each hop: a jump host's own one, else that of the host behind it. */
function loginsFor(
  hops: HostRow[],
  { username, credential }: { username: string; credential: Credential },
): HopLogin[] {
  const logins: HopLogin[] = [];
  let login = { username, ...credential };
  for (const host of hops.toReversed()) {
    const { username, jump, ...credential } = login;
    logins.unshift({ host, username, credential });
    login = jump ?? login;
  }
  return logins;
}

/** Others need not wait until the user has answered. */
const pausing =
  (ask: Ask, guard: LoginGuard | undefined): Ask =>
  round => {
    guard?.pause();
    return ask(round);
  };

/** Says which of several hosts asks. */
const askingAt =
  (until: HostRow[], { length }: HostRow[], ask: Ask): Ask =>
  ({ instruction, prompts }) => {
    const asks = length > 1 ? [`${until.at(-1)?.name} asks:`] : [];
    return ask({ instruction: [...asks, instruction].join('\n').trim(), prompts });
  };

/** Each connection ends with the other: a jump host's serves no other one. */
function tie(via: ssh2.Client, client: ssh2.Client): void {
  via.once('close', () => client.destroy());
  client.once('close', () => via.destroy());
}
