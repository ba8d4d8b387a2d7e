import { unwrap } from '../../../clients/typescript/src/api.ts';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { RELEASE } from '../../../shared/process/release.ts';
import { describeError } from '../../output/describe-error.ts';
import { printable } from '../../output/printable.ts';
import { write } from '../../output/write.ts';
import { connectTo, findService } from '../connect.ts';
import { listSessions } from '../find-session.ts';

interface Finding {
  /** A noun, of which the line says that it is ok or BAD. */
  what: string;
  /** What is wrong, and the next step. Absent: nothing is. */
  problem?: string;
}

/** `windlass doctor`: what is wrong, and the next step. Ends with status 1 if something is. */
export async function examine({ json }: { json?: boolean }): Promise<void> {
  const service = await findService();
  // Without retries: whether the service is unreachable is the question.
  const windlass = connectTo({ ...service, patience: 2 });
  let isWell = true;
  for await (const { what, problem } of examineService(windlass, service.url)) {
    if (problem !== undefined) isWell = false;
    const line = printable(problem === undefined ? `ok   ${what}` : `BAD  ${what}: ${problem}`);
    await write(process.stdout, json ? `${JSON.stringify({ what, problem })}\n` : `${line}\n`);
  }
  if (!isWell) process.exitCode = 1;
}

async function* examineService(windlass: Windlass, url: string): AsyncGenerator<Finding> {
  const { api } = windlass;
  const answers = await check(`service at ${url}`, () => unwrap(api.GET('/healthz')));
  yield answers;
  if (answers.problem !== undefined) return;
  yield* examineReadiness(windlass);
  const user = await check('your login', () => unwrap(api.GET('/api/users/-')));
  yield user;
  if (user.problem !== undefined || user.found === undefined) return;
  yield* examineRelease(windlass);
  if (user.found.administrator) yield* examineWorkers(windlass);
  for (const { hostname, username, state } of await listSessions(windlass)) {
    const what = `session as ${username} on ${hostname}`;
    const again = `it is lost; log in again: windlass run ${hostname} --user ${username} -- true`;
    yield state === 'reconnect' ? { what, problem: again } : { what };
  }
}

/** /readyz answers 503 with the same document where a check fails. */
async function* examineReadiness({ api }: Windlass): AsyncGenerator<Finding> {
  const { data, error } = await api.GET('/readyz');
  const readiness = data ?? (error as unknown as typeof data);
  if (readiness?.checks === undefined)
    return yield { what: 'readiness', problem: 'it does not say; see its log.' };
  for (const [name, problem] of Object.entries(readiness.checks))
    yield { what: name, problem: problem ?? undefined };
  const checked = Object.values(readiness.checks);
  for (const problem of readiness.degraded.filter(one => !checked.includes(one)))
    yield { what: 'a part of the service', problem };
  const { workers } = readiness;
  if (workers === 0)
    yield {
      what: 'workers',
      problem: 'none is, so that jobs wait; start one, or see the log of those that there are.',
    };
}

async function* examineRelease({ api }: Windlass): AsyncGenerator<Finding> {
  const { version } = await unwrap(api.GET('/api/configuration/version'));
  yield { what: `release ${version} (this program: ${RELEASE})` };
}

async function* examineWorkers({ api }: Windlass): AsyncGenerator<Finding> {
  const { items } = await unwrap(api.GET('/api/workers'));
  for (const { id, host, kinds, draining } of items) {
    const what = `worker ${id} on ${host} (${kinds.join(', ')})`;
    if (draining) yield { what, problem: `it drains; end that: windlass worker resume ${id}` };
    else yield { what };
  }
}

async function check<T>(what: string, ask: () => Promise<T>): Promise<Finding & { found?: T }> {
  try {
    return { what, found: await ask() };
  } catch (error) {
    if (!(error instanceof WindlassError)) throw error;
    return { what, problem: describeError(error) };
  }
}
