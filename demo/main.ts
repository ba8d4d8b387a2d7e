import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SshHost, startSshHost } from '../servers/ssh-host.ts';
import { type Stack, startStack } from '../servers/stack.ts';
import { bold, Console, describeError, dim, green, red } from './console.ts';
import { describeMissingPrograms, type FleetServers, startFleetServers } from './fleet-servers.ts';
import { runSteps, type Shown } from './run-steps.ts';

process.title = 'windlass-demo';
const USAGE = `npm run demo [-- [--fleet] [--exit]]
  --fleet  on a PostgreSQL, a Redis and a MinIO instead of on the embedded database and files
  --exit   end after the last step instead of leaving the service up to try`;

const args = process.argv.slice(2);
const unknown = args.find(argument => !['--fleet', '--exit', '--help'].includes(argument));
if (unknown !== undefined || args.includes('--help')) {
  const words = unknown === undefined ? USAGE : `There is no ${unknown}.\n${USAGE}`;
  (unknown === undefined ? process.stdout : process.stderr).write(`${words}\n`);
  process.exit(unknown === undefined ? 0 : 2);
}
const isFleet = args.includes('--fleet');
const missing = isFleet ? describeMissingPrograms() : undefined;
if (missing) {
  process.stderr.write(`${missing}\n`);
  process.exit(1);
}

const out = new Console();
let signals = 0;
const stopped = new Promise<'stopped'>(resolve => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      resolve('stopped');
      // A second signal exits at once. Child processes end with this one.
      if (++signals > 1) process.exit(130);
    });
  }
});
// Promises, so that a service that is still starting can be stopped once it has started.
let host: Promise<SshHost> | undefined;
let servers: Promise<FleetServers> | undefined;
let stack: Promise<Stack> | undefined;
const directory = await mkdtemp(join(tmpdir(), 'windlass-demo-'));
// As root, Postgres runs as another user, who must be able to enter.
await chmod(directory, 0o711);

let status = 0;
try {
  if ((await Promise.race([demonstrate(), stopped])) === 'stopped') status = 130;
  else if (!args.includes('--exit')) await stopped;
} catch (error) {
  status = 1;
  // The step has already printed the error in one line.
  if (process.env.LOG_LEVEL === 'debug') console.error(error);
  process.stdout.write(`\n${red('The demonstration failed.')} LOG_LEVEL=debug shows more.\n`);
} finally {
  out.close();
  process.stdout.write(dim('\nStopping …\n'));
  await stopAll();
}
process.exit(status);

async function demonstrate(): Promise<void> {
  out.title(
    `Windlass: remote commands, videos and uploads that survive any process (${isFleet ? 'fleet' : 'embedded'})`,
  );
  const ssh = await out.step(
    'Start an SSH host on loopback, for this demonstration only',
    async () => {
      host = startSshHost({ directory: join(directory, 'host'), log: () => {} });
      const { kind, host: address, port } = await host;
      out.note(`${kind} on ${address}:${port}, keys and home of its own`);
      return host;
    },
  );
  const settings = isFleet ? await startServers() : undefined;
  const what = isFleet
    ? 'Start the service: two API processes and two workers for each kind of work'
    : 'Start the service: PostgreSQL, API and two workers';
  const service = await out.step(what, async () => {
    stack = startStack({ directory, environment: process.env, settings });
    out.note((await stack).url);
    return stack;
  });
  const files = join(directory, 'files');
  await mkdir(files);
  const demo = { out, host: ssh, client: service.client, directory: files };
  const shown = await runSteps(demo, service);
  process.stdout.write(`\n${green('All of it worked')}, in ${out.total}.\n`);
  if (!args.includes('--exit')) showHow(service, shown);
}

function startServers(): Promise<Record<string, string>> {
  return out.step('Start a PostgreSQL, a Redis and a MinIO beside it', async () => {
    servers = startFleetServers(directory);
    const { settings } = await servers;
    const { DATABASE_URL = '', REDIS_URL = '', S3_ENDPOINT = '' } = settings;
    for (const url of [DATABASE_URL, REDIS_URL, S3_ENDPOINT])
      out.note(`${new URL(url).protocol}//${new URL(url).host}`);
    return settings;
  });
}

/** Stops everything, also if some of it fails to stop. */
async function stopAll(): Promise<void> {
  for (const started of [stack, servers, host]) {
    // A failed start was already reported.
    const one = await started?.catch(() => undefined);
    await one?.stop().catch(reportStopError);
  }
  const again = { maxRetries: 5, retryDelay: 100 };
  await rm(directory, { recursive: true, force: true, ...again }).catch(reportStopError);
}

function reportStopError(error: unknown): void {
  process.stdout.write(`${red('Stopping failed')}: ${describeError(error)}\n`);
}

function showHow({ url, username, password }: Stack, { session, table }: Shown): void {
  const login = `-u ${username}:${password}`;
  process.stdout.write(`
${bold('The service is still up. Open in a browser,')} logged in as ${username} with the password ${password}:
  ${url}/console/       the console, with all that was made here
  ${url}/admin/queues   the queues, in Bull Board
  ${url}/api/docs       every operation
${bold('Or try:')}
  curl ${login} ${url}/api/remotes/launch --json '{"sid": "${session}", "command": "uname -a; uptime"}'
  curl ${login} '${url}${table}/rows?limit=3&sort=temperature'
  curl ${login} '${url}/api/jobs?limit=3'
${dim('Ctrl-C ends it and removes its data.')}
`);
}
