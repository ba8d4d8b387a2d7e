import { beforeAll, beforeEach, expect, test } from 'vitest';
import { type Session, Windlass } from '../../clients/typescript/src/index.ts';
import { connectWindlass, gather, useLink } from '../harness/clients/windlass-client.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), '@windlass/client runs commands', form => {
  const { stack, sshd } = useRemoteStack(form, { alone: 'its API is killed' });
  const link = useLink(stack);
  let windlass: Windlass;
  let session: Session;

  beforeAll(async () => {
    windlass = connectWindlass(stack, link.port);
    const { username, privateKey } = sshd;
    session = await windlass.open('host', { username, privateKey });
  });
  beforeEach(() => link.heal());

  test('a command gives its lines, and what became of it', async () => {
    const run = session.run('echo one; echo two >&2; printf three; exit 7');
    expect(await run.job).toMatch(/^[0-9a-z]{26}$/);
    const lines = await gather(run);
    expect(lines).toHaveLength(3);
    const of = (stream: string) =>
      lines.filter(line => line.stream === stream).map(({ text }) => text);
    expect([of('stdout'), of('stderr')]).toEqual([['one', 'three'], ['two']]);
    const result = {
      returncode: 7,
      output: 'one\nthree',
      errors: 'two\n',
      truncated: false,
      job: await run.job,
    };
    expect(await run.wait()).toEqual(result);
    expect(await windlass.follow(result.job).wait()).toEqual(result);
  });

  test('no line comes twice and none is missing where connections are cut and the API is killed', async () => {
    const count = 600;
    const run = session.run(
      `for n in $(seq ${count}); do echo "line $n ä€😀"; echo "other $n" >&2; sleep 0.01; done`,
    );
    const seen = { stdout: [] as string[], stderr: [] as string[] };
    for await (const { stream, text } of run) {
      seen[stream].push(text);
      if (stream === 'stdout' && seen.stdout.length % 50 === 0) link.cut();
      if (stream === 'stdout' && seen.stdout.length === 225) stack.kill('windlass-api');
      // This one ends its streams in good order.
      if (stream === 'stdout' && seen.stdout.length === 425) stack.kill('windlass-api', 'SIGTERM');
    }
    const expected = (word: string, end = '') =>
      Array.from({ length: count }, (_, n) => `${word} ${n + 1}${end}`);
    expect(seen).toEqual({ stdout: expected('line', ' ä€😀'), stderr: expected('other') });
    expect(link.connections.total).toBeGreaterThan(10);
    const { output, errors, returncode } = await run.wait();
    expect(output.split('\n')).toHaveLength(count + 1);
    expect(errors.split('\n')).toHaveLength(count + 1);
    expect(returncode).toBe(0);
  });

  test('a command runs once though the answer to its request is lost', async () => {
    const file = `$HOME/once-${Date.now()}`;
    link.cutAfter('down', 1);
    const first = session.run(`echo x >> ${file}`);
    expect((await first.wait()).returncode).toBe(0);
    expect((await session.run(`cat ${file}; rm ${file}`).wait()).output).toBe('x\n');
  });

  test('the first 10 MiB of an output come whole, over connections that are cut', async () => {
    const run = session.run(`seq 2000000; printf 'ä%.0s' $(seq 1000) >&2`);
    await windlass.wait(await run.job);
    const { total } = link.connections;
    link.cutAfter('down', 3 << 20);
    const { output, errors, truncated } = await run.wait();
    expect(link.connections.total).toBeGreaterThan(total);
    const lines = Array.from({ length: 1_500_000 }, (_, n) => `${n + 1}\n`);
    expect(output === lines.join('').slice(0, 10 << 20)).toBe(true);
    expect([errors, truncated]).toEqual(['ä'.repeat(1_000), true]);
  });

  test('under a key of its own a command runs once, whoever asks for it', async () => {
    const idempotencyKey = `key-${Date.now()}`;
    const first = session.run('date +%s%N', { idempotencyKey });
    const again = windlass.session(session.sid).run('date +%s%N', { idempotencyKey });
    expect(await again.job).toBe(await first.job);
    expect((await again.wait()).output).toBe((await first.wait()).output);
    const other = session.run('date', { idempotencyKey });
    await expect(other.job).rejects.toMatchObject({ status: 409, code: 'idempotency_conflict' });
  });

  test('lists are as long as asked for', async () => {
    const run = session.run('true', { name: 'listed' });
    await run.wait();
    const job = { id: await run.job, state: 'succeeded', label: 'true' };
    expect(await gather(windlass.jobs({ name: 'listed' }))).toMatchObject([job]);
    expect(await gather(windlass.jobs({ kind: ['command'], limit: 2 }))).toHaveLength(2);
    expect(await gather(windlass.jobs({ kind: ['command'], limit: 0 }))).toEqual([]);
    for (const limit of [-1, NaN])
      await expect(gather(windlass.jobs({ limit }))).rejects.toMatchObject({
        code: 'invalid_input',
      });
  });

  test('a stream that has fallen silent is opened again', async () => {
    const run = session.run('for n in 1 2 3 4; do echo $n; sleep 0.5; done', { silence: 2 });
    const seen: string[] = [];
    for await (const { text } of run) {
      seen.push(text);
      if (text === '2') link.forget();
    }
    expect(seen).toEqual(['1', '2', '3', '4']);
  });

  test('bytes that are no text, and characters that are written in two halves', async () => {
    const run = session.run(`printf 'a\\303'; sleep 0.3; printf '\\244\\377\\000z\\r\\n'`);
    const bytes: number[] = [];
    for await (const chunk of run.chunks()) {
      expect(chunk.offset).toBe(bytes.length);
      bytes.push(...chunk.bytes);
    }
    expect(bytes).toEqual([0x61, 0xc3, 0xa4, 0xff, 0x00, 0x7a, 0x0d, 0x0a]);
    expect(await gather(run)).toEqual([{ stream: 'stdout', text: 'aä\ufffd\0z' }]);
  });

  test('a cancelled command says so, and cancelling it again is false', async () => {
    const run = session.run('echo begun; sleep 600');
    for await (const { text } of run) if (text === 'begun') expect(await run.cancel()).toBe(true);
    await expect(run.wait()).rejects.toMatchObject({
      name: 'WindlassError',
      code: 'cancelled',
      status: 0,
      job: await run.job,
    });
    expect(await run.cancel()).toBe(false);
  });

  test('a loop is left by its signal, while the command goes on', async () => {
    const stop = new AbortController();
    const run = session.run('echo 1; sleep 600', { signal: stop.signal });
    const loop = async () => {
      for await (const _ of run) stop.abort(new Error('enough'));
    };
    await expect(loop()).rejects.toThrow('enough');
    await expect(run.wait()).rejects.toThrow('enough');
    const job = await run.job;
    const { items } = await windlass.api
      .GET('/api/jobs', { params: { query: { state: ['running'] } } })
      .then(({ data }) => data ?? { items: [] });
    expect(items.map(({ id }) => id)).toContain(job);
    expect(await windlass.cancel(job)).toBe(true);
    expect((await windlass.wait(job)).state).toBe('cancelled');
  });

  test('what is refused is a WindlassError with all that the service says', async () => {
    const refused = windlass.session('01KB4TC9E1F3G5H7J9K1M3N5P7').run('true');
    await expect(refused.job).rejects.toMatchObject({
      name: 'WindlassError',
      status: 404,
      code: 'session_not_found',
      detail: 'Session does not exist or has timed out.',
      hint: expect.stringContaining('POST /api/remotes'),
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const unknown = windlass.follow('01KB4TC9E1F3G5H7J9K1M3N5P7');
    await expect(gather(unknown)).rejects.toMatchObject({ status: 404 });
  });

  test('a service that cannot be reached is unreachable after the time that is asked for', async () => {
    link.refuse();
    const retries: number[] = [];
    const impatient = new Windlass({
      url: `http://127.0.0.1:${link.port}`,
      token: 'none',
      patience: 1,
      onRetry: ({ seconds }) => retries.push(seconds),
    });
    await expect(gather(impatient.jobs())).rejects.toMatchObject({
      status: 0,
      code: 'unreachable',
      detail: expect.stringContaining(`127.0.0.1:${link.port}`),
    });
    expect(retries.length).toBeGreaterThan(0);
    await waitFor(() => link.connections.refused > 1, { what: 'more than one attempt' });
  });
});
