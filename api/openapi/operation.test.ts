import type { Request, Response } from 'express';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { callOperation, operation, type TypedResponse } from './operation.ts';

const overview = operation({
  id: 'seeOverview',
  topic: 'operations',
  summary: 'See what only administrators may see',
  for: 'administrators',
  answers: { 204: 'Seen.' },
  handle: ({ res }) => void res.locals.seen.push(res.locals.user?.username),
});

test('an operation for administrators refuses others before its handler runs', () => {
  const seen: string[] = [];
  const call = (username: string, administrator: boolean) => {
    const res = { locals: { user: { username, administrator }, seen } };
    return callOperation(overview, {} as Request, res as unknown as Response);
  };
  expect(() => call('user', false)).toThrow('only a server administrator may do this.');
  call('root', true);
  expect(seen).toEqual(['root']);
});

test('a handler sends what its operation declares, and nothing else compiles', () => {
  const answers = {
    200: { means: 'Counted.', json: z.object({ count: z.number() }) },
    201: { means: 'Made.', json: z.object({ id: z.string() }) },
    204: 'Nothing.',
    206: { means: 'A part.', types: ['text/plain'] },
  };
  // Never called: the compiler is what refuses.
  const handlers = [
    (res: TypedResponse<typeof answers>) => {
      res.json({ count: 1 });
      res.status(201).location('/x').json({ id: 'x' });
      res.status(204).end();
      res.status(206).send(Buffer.from('part'));
    },
    // @ts-expect-error A body of another type.
    (res: TypedResponse<typeof answers>) => res.json({ count: 'one' }),
    // @ts-expect-error A member is missing.
    (res: TypedResponse<typeof answers>) => res.json({}),
    // @ts-expect-error A member that is not declared.
    (res: TypedResponse<typeof answers>) => res.json({ count: 1, total: 2 }),
    // @ts-expect-error The body of another status.
    (res: TypedResponse<typeof answers>) => res.status(201).json({ count: 1 }),
    // @ts-expect-error A body where none is declared.
    (res: TypedResponse<typeof answers>) => res.status(204).json({ count: 1 }),
    // @ts-expect-error A status that is not declared.
    (res: TypedResponse<typeof answers>) => res.status(202).end(),
  ];
  expect(handlers).toHaveLength(7);
});
