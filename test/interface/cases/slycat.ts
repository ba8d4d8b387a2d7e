import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer } from '../tools.ts';

const at = (words: string) => `decisions-more, the public relative's client: ${words}`;

/** decisions-more.md, "For the public relative's client": see docs/slycat.md. */
export const SLYCAT: Row[] = [
  row(
    at('"agent": null is as if absent'),
    'POST /remotes',
    async ({ ask, make, world }) => {
      const opened = await ask('POST', '/remotes', { json: { ...world.host, agent: null } });
      expectAnswer(opened, 200, { json: { sid: expect.any(String) } });
      await make.call('DELETE', `/remotes/${opened.json().sid}`);
    },
    'host',
  ),
];
