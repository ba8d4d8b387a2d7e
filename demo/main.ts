import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bold, Console, dim, green, red } from './console.ts';
import { type SshHost, startSshHost } from './ssh-host.ts';
import { type Stack, startStack } from './stack.ts';
import { openSession, runCommand, surviveKill } from './steps/commands.ts';
import { drawFrames, makeVideo } from './steps/videos.ts';

process.title = 'windlass-demo';
const exits = process.argv.includes('--exit');
const out = new Console();
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort());

let host: SshHost | undefined;
let stack: Stack | undefined;
const directory = await mkdtemp(join(tmpdir(), 'windlass-demo-'));
// As root the database runs as another user, who must be able to pass through.
await chmod(directory, 0o711);
let status = 0;
try {
  await demonstrate();
} catch (error) {
  status = 1;
  if (process.env.LOG_LEVEL === 'debug') console.error(error);
  process.stdout.write(`\n${red('The demonstration failed.')} LOG_LEVEL=debug shows more.\n`);
} finally {
  await stack?.stop();
  await host?.stop();
  await rm(directory, { recursive: true, force: true });
}
process.exit(status);

async function demonstrate(): Promise<void> {
  out.title('Windlass: remote commands and videos that survive any process');

  const ssh = await out.step(
    'Start an SSH host on loopback, for this demonstration only',
    async () => {
      host = await startSshHost({ directory: join(directory, 'host'), log: () => {} });
      out.note(`${host.kind} on ${host.host}:${host.port}, keys and home of its own`);
      return host;
    },
  );
  const service = await out.step('Start the service: Postgres, API and two workers', async () => {
    stack = await startStack(directory);
    out.note(stack.url);
    return stack;
  });
  const demo = { out, host: ssh, client: service.client };

  const session = await out.step('Open a session with an agent', () => openSession(demo));
  await out.step('Run a command and show its lines as they come', () => runCommand(demo, session));
  const frames = await out.step('Draw 60 frames on the host', () => drawFrames(demo));
  for (const type of ['video/mp4', 'video/webm'] as const) {
    await out.step(`Make a ${type}, fetch it whole and by range, count its frames`, () =>
      makeVideo(demo, { session, frames, type, directory }),
    );
  }
  await out.step('Start a long command and kill the worker that holds it with -9', () =>
    surviveKill(demo, session),
  );

  process.stdout.write(`\n${green('All of it worked')}, in ${out.total}.\n`);
  if (exits) return;
  showHow(service, session);
  await new Promise(resolve => {
    if (stopped.signal.aborted) return resolve(undefined);
    stopped.signal.addEventListener('abort', resolve, { once: true });
  });
}

function showHow({ url, username, password }: Stack, session: string): void {
  const login = `-u ${username}:${password}`;
  process.stdout.write(`
${bold('The service is still up. Try:')}
  curl ${login} ${url}/api/users/-
  curl ${login} ${url}/api/remotes/launch --json '{"sid": "${session}", "command": "uname -a; uptime"}'
  curl ${login} '${url}/api/jobs?limit=3'
${dim('Ctrl-C ends it and removes its data.')}
`);
}
