import type { Request, Response } from 'express';
import { expect, test } from 'vitest';
import { newSecret } from './random-secrets.ts';
import { sentCredentials, usedCredential } from './sent-credential.ts';

const withHeaders = (headers: Record<string, string>) =>
  ({ headers, get: (name: string) => headers[name.toLowerCase()] }) as unknown as Request;
const withLocals = (locals: object) => ({ locals }) as Response;

test('any of several cookies may be what identifies the user, and one does', () => {
  const [mine, other] = [newSecret(), newSecret()];
  const req = withHeaders({ cookie: `serviceauth=${other}; serviceauth=${mine}` });
  expect(sentCredentials(req)).toEqual([other, mine]);
  expect(usedCredential({ req, res: withLocals({ by: 'cookie', loginSecret: mine }) })).toBe(mine);
});

test('an Authorization header counts alone, and a link has no credential', () => {
  const req = withHeaders({ authorization: 'Bearer t', cookie: `serviceauth=${newSecret()}` });
  expect(sentCredentials(req)).toEqual(['Bearer t']);
  expect(usedCredential({ req, res: withLocals({ by: 'token' }) })).toBe('Bearer t');
  expect(usedCredential({ req, res: withLocals({ by: 'link' }) })).toBeUndefined();
  expect(sentCredentials(withHeaders({}))).toEqual([]);
});
