import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

/** Octal escapes for printf, and the bytes that they are. */
const SCRIPT = String.raw`printf 'a\n\nevent: state\ndata: {"state":"failed"}\nid: 9-9\n\n\r\r\000\033[2J\302\205\377\357\273\277end'`;
const BYTES = Buffer.from(
  'a\n\nevent: state\ndata: {"state":"failed"}\nid: 9-9\n\n\r\r\0\x1b[2J\xc2\x85\xff\xef\xbb\xbfend',
  'latin1',
);

describeStack(missingPrograms('sshd'), 'what hosts and their files are asked and say', form => {
  const { client, sshd } = useRemoteStack(form);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  test('output that looks like events, lines or terminal codes is output alone', async () => {
    const { id } = await launchAsync(client, sid, SCRIPT);
    expect((await waitForEnd(client, id)).state).toBe('succeeded');
    expect(await readOutput(client, id)).toEqual(BYTES);
    const seen: string[] = [];
    const output: Buffer[] = [];
    for await (const { event, data } of client.events(id)) {
      seen.push(event === 'state' ? `state ${data.state}` : event);
      if (event !== 'output') continue;
      output.push(
        typeof data.text === 'string'
          ? Buffer.from(data.text, 'utf8')
          : Buffer.from(String(data.base64), 'base64'),
      );
    }
    expect(Buffer.concat(output)).toEqual(BYTES);
    const said = seen.filter(event => event !== 'output' && event !== 'progress');
    expect(new Set(said)).toEqual(new Set(['state succeeded']));
  });

  test('a session stays usable, however many files it is asked for that are not there', async () => {
    // More than the channels of both connections together.
    for (let n = 0; n < 60; n++)
      await expectProblem(await client.fetch(`/api/remotes/${sid}/file/0`), 404, 'not_found');
    expect((await client.fetch(`/api/remotes/${sid}/file/etc/passwd`)).status).toBe(200);
  });

  test.each(['%00', 'a%00b', '%FF', '%ED%A0%80'])('no path on the host holds %s', async word => {
    for (const [method, kind] of [
      ['GET', 'file'],
      ['POST', 'browse'],
    ]) {
      const response = await client.fetch(`/api/remotes/${sid}/${kind}/${word}`, { method });
      expect([kind, response.status]).toEqual([kind, 400]);
      await response.body?.cancel();
    }
  });

  test('a path that would be commands, options or escapes is a path', async () => {
    for (const path of [';id', '$(id)', '`id`', "'", '"', '-rf', 'a\nb', '*', '\\', '../../x', '~'])
      await expectProblem(
        await client.fetch(`/api/remotes/${sid}/file/${encodeURIComponent(`nope ${path}`)}`),
        404,
        'not_found',
      );
  });
});
