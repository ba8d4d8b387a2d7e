import { createHash, randomFillSync } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canInstallPython } from '../../scripts/install-python.ts';
import { listTestPythons, type TestPython } from '../../scripts/python-client.ts';
import { isFull, seed } from '../faults/settings.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { connectWindlass, gather } from '../harness/clients/windlass-client.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { Random } from '../harness/random.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { UNLIMITED, useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';
import { type EachClient, type ServiceLogin, type Shown, startClient } from './each-client.ts';

const MB = 1 << 20;
/** How often each client loses its stream. */
const CUTS = isFull ? 1_000 : 12;
/** Between two cuts fewer bytes come through than four parts at once have, which is usual. */
const UPLOAD = isFull
  ? { bytes: 1 << 30, rate: 2.5 * MB, what: '1 GB over a link that is cut every 10 s' }
  : { bytes: 24 * MB + 1, rate: 10 * MB, what: '24 MB over a link that is cut every 12 MB' };
const TEST_MS = isFull ? 3_600_000 : 240_000;

/** Lines of both streams, until a file is there. */
const writeUntil = (file: string) => `n=0
until test -e ${file}; do
  n=$((n+1)); echo "Zeile $n ä€😀"
  [ $((n % 10)) != 0 ] || echo "other $n" >&2
  sleep 0.02
done`;

const [python] = listTestPythons().filter(({ installed }) => installed);
const missingPython = { reason: 'needs the packages for Python', obtainable: canInstallPython() };

describeStack(
  missingPrograms('sshd', 'chromium') ?? (python ? undefined : missingPython),
  'over links that are cut',
  form => {
    const { stack, client, sshd } = useRemoteStack(form, UNLIMITED);
    const directory = makeTempDir('cut-links');
    afterAll(() => directory.remove());
    let login: Omit<ServiceLogin, 'url'>;
    let mid: string;
    const file = join(directory.path, 'large');
    let digest: string;

    beforeAll(async () => {
      const body = { name: 'each client', scope: 'write' };
      const { token } = await client.post<{ token: string }>('/api/users/-/tokens', body);
      const { username, privateKey } = sshd;
      const session = await connectWindlass(stack).open('host', { username, privateKey });
      login = { token, sid: session.sid };
      ({ mid } = await makeModel(client));
      writeRandomFile(file, UPLOAD.bytes);
      digest = await digestOf(createReadStream(file));
    });

    /** A way to the service of its own, for one client. */
    async function openLink(): Promise<{ link: TcpProxy; url: string }> {
      const { hostname, port } = new URL(stack.url);
      const link = await startTcpProxy({ host: hostname, port: Number(port) });
      return { link, url: `http://127.0.0.1:${link.port}` };
    }

    for (const [name, start] of Object.entries(startClient(python as TestPython))) {
      const used: EachClient = useStarted(start);

      for (const way of ['run', 'follow'] as const)
        test.concurrent(
          `${name} shows each line once where ${way} loses its stream ${CUTS} times`,
          async () => {
            const { link, url } = await openLink();
            const end = join(sshd.home, `end-${way}-${name.replaceAll(' ', '-')}`);
            const command = writeUntil(end);
            try {
              let job: string | undefined;
              if (way === 'follow')
                job = await connectWindlass(stack).session(login.sid).run(command).job;
              const showing = job
                ? used.follow({ url, ...login }, job)
                : used.run({ url, ...login }, command);
              const cutting = cutOften(link).finally(() => writeFileSync(end, ''));
              const [shown] = await Promise.all([showing, cutting]);
              expectEachOnce(shown);
              if (job) expect(shown).toEqual(await readWhole(job));
            } finally {
              await link.stop();
            }
          },
          TEST_MS,
        );

      test.concurrent(
        `${name} sends ${UPLOAD.what}`,
        async () => {
          const { link, url } = await openLink();
          link.throttle('up', UPLOAD.rate);
          const sent = new AbortController();
          const cutting = isFull
            ? cutEvery(link, 10_000, sent.signal)
            : cutAtBytes(link, 12 * MB, sent.signal);
          try {
            await used.upload({ url, ...login }, file, { mid, aid: name });
            sent.abort();
            expect(await cutting).toBeGreaterThan(1);
            const { body } = await client.fetch(
              `/api/models/${mid}/files/${encodeURIComponent(name)}`,
            );
            expect(await digestOf(Readable.fromWeb(body as never))).toBe(digest);
          } finally {
            sent.abort();
            await link.stop();
          }
        },
        TEST_MS,
      );

      test.concurrent.each([
        { size: 12 * MB + 1, every: 3 * MB, rate: 10 * MB },
        // What is lost, is lost at once.
        { size: 6 * MB + 1, every: MB, rate: Infinity },
      ])(
        `${name} writes $size bytes to a host, and sends them, over a link of $rate that is cut every $every`,
        async ({ size, every, rate }) => {
          const { link, url } = await openLink();
          link.throttle('up', rate);
          const over = new AbortController();
          const cutting = cutAtBytes(link, every, over.signal);
          const source = join(directory.path, `${name} ${size}`);
          writeRandomFile(source, size);
          const folder = join(sshd.home, `of ${name} ${size}`);
          mkdirSync(folder);
          const target = join(folder, "it's");
          writeFileSync(target, 'as before', { mode: 0o604 });
          const aid = `${name} ${size}`;
          try {
            await used.write({ url, ...login }, source, target);
            expect(readFileSync(target).equals(readFileSync(source))).toBe(true);
            // As of cp, it has those of its source.
            expect(statSync(target).mode & 0o777).toBe(0o604);
            expect(readdirSync(folder)).toEqual(["it's"]);
            await used.upload({ url, ...login }, source, { mid, aid });
            over.abort();
            expect(await cutting).toBeGreaterThan(1);
            const path = `/api/models/${mid}/files/${encodeURIComponent(aid)}`;
            const { bytes } = await client.getBytes(path);
            expect(bytes.equals(readFileSync(source))).toBe(true);
          } finally {
            over.abort();
            await link.stop();
          }
        },
        TEST_MS,
      );
    }

    /** What the service has of a job that has ended. */
    async function readWhole(job: string): Promise<Shown> {
      const whole: Shown = { stdout: [], stderr: [] };
      for (const { stream, text } of await gather(connectWindlass(stack).follow(job)))
        whole[stream].push(text);
      return whole;
    }
  },
);

/** Cuts the link again and again, in the middle of a line, of an event or of what comes before them. */
async function cutOften(link: TcpProxy): Promise<void> {
  const random = new Random(seed);
  for (let cuts = 0; cuts < CUTS; cuts++) {
    const { down } = link.bytes;
    const more = random.between(1, 3_000);
    await waitFor(() => link.connections.open > 0 && link.bytes.down > down + more, {
      what: `more bytes after ${cuts} cuts`,
      timeoutMs: 60_000,
      intervalMs: 5,
    });
    link.cut();
  }
}

/** Until it is over; how often. */
async function cutEvery(link: TcpProxy, ms: number, over: AbortSignal): Promise<number> {
  for (let cuts = 0; ; cuts++) {
    await delay(ms, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return cuts;
    link.cut();
  }
}

/** Cuts the link each time when `bytes` bytes have passed: however slow the machine is, one part comes through. */
async function cutAtBytes(link: TcpProxy, bytes: number, over: AbortSignal): Promise<number> {
  for (let cuts = 0; ; cuts++) {
    const from = link.bytes.up;
    link.cutAfter('up', bytes);
    await waitFor(() => over.aborted || link.bytes.up >= from + bytes, {
      what: `${bytes} more bytes`,
      timeoutMs: TEST_MS,
    });
    if (over.aborted) return cuts;
  }
}

function expectEachOnce({ stdout, stderr }: Shown): void {
  expect(stdout.length).toBeGreaterThan(CUTS);
  expect(stdout).toEqual(stdout.map((_, n) => `Zeile ${n + 1} ä€😀`));
  expect(stderr).toEqual(stderr.map((_, n) => `other ${10 * (n + 1)}`));
  expect(stderr).toHaveLength(Math.floor(stdout.length / 10));
}

function writeRandomFile(path: string, bytes: number): void {
  const descriptor = openSync(path, 'w');
  const block = Buffer.alloc(8 * MB);
  for (let left = bytes; left > 0; left -= block.length)
    writeSync(descriptor, randomFillSync(block), 0, Math.min(left, block.length));
  closeSync(descriptor);
}

async function digestOf(bytes: Readable): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(bytes, hash);
  return hash.digest('hex');
}
