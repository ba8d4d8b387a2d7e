import { beforeAll, expect, test } from 'vitest';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { expectFlat, missingMemory, watchMemory } from '../harness/stacks/memory.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

const MIB = 1 << 20;

interface Answer {
  command: string;
  output: string;
  errors: string;
  returncode: number;
  job: string;
  truncated?: true;
}

describeStack(missingMemory() ?? missingPrograms('sshd'), 'what launches answer with', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    alone: 'measures the memory of its processes',
  });
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  const launch = (command: string) => client.post<Answer>('/api/remotes/launch', { sid, command });

  test('text is whole, wherever it was cut on its way, and what is no UTF-8 is replaced', async () => {
    const line = 'a"\\\t\u2028ü漢😀';
    const printed = await launch(
      `i=0; while [ $i -lt 13 ]; do yes '${line}' | head -n 700; i=$((i + 1)); done; printf 'end\\377\\360\\237' ; printf '\\303\\050' >&2; exit 3`,
    );
    expect(printed.output).toBe(`${`${line}\n`.repeat(9_100)}end\ufffd\ufffd`);
    expect(printed).toMatchObject({ errors: '\ufffd(', returncode: 3 });
    expect(printed).not.toHaveProperty('truncated');
    expect(await launch('echo short')).toEqual({
      command: 'echo short',
      output: 'short\n',
      errors: '',
      returncode: 0,
      job: expect.any(String),
    });
  });

  test('a character that the limit splits is left out', async () => {
    const fill = `head -c ${10 * MIB - 1} /dev/zero | tr '\\0' x`;
    const printed = await launch(`{ ${fill}; printf ü; } | tee /dev/stderr`);
    expect(printed.truncated).toBe(true);
    for (const text of [printed.output, printed.errors])
      expect([text.length, text.at(-1)]).toEqual([10 * MIB - 1, 'x']);
    const bytes = await launch(`${fill}; printf '\\377x'`);
    expect([bytes.output.length, bytes.output.at(-1)]).toEqual([10 * MIB, '\ufffd']);
  });

  test('what is six times as long in JSON is not held so', async () => {
    const watch = watchMemory(stack);
    const zeros = `head -c ${10 * MIB} /dev/zero`;
    const printed = await launch(`${zeros}; ${zeros} >&2; echo more`);
    expect(printed.truncated).toBe(true);
    for (const text of [printed.output, printed.errors])
      expect([text.length, /[^\0]/.test(text)]).toEqual([10 * MIB, false]);
    const apis = Object.entries(watch.growth()).filter(([name]) => name.startsWith('windlass-api'));
    expectFlat(Object.fromEntries(apis));
  });
});
