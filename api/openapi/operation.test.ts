import type { Request, Response } from 'express';
import { expect, test } from 'vitest';
import { callOperation, operation } from './operation.ts';

const overview = operation({
  id: 'seeOverview',
  topic: 'operations',
  summary: 'See what only administrators may see',
  for: 'administrators',
  answers: { 204: 'Seen.' },
  handle: ({ res }) => void res.locals.seen.push(res.locals.user.username),
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
