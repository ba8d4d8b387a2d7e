import { expect, test } from 'vitest';
import { findSession, type NamedLogin } from './find-session.ts';

const login = (sid: string, username: string, state: 'open' | 'reconnect' = 'open') => ({
  sid,
  username,
  state,
  hostname: 'lab',
});
const ofRoot = login('r', 'root');
const ofAlice = login('a', 'alice');
const NOTHING: NamedLogin = { sid: null, host: null, user: null };
const at = (named: Partial<NamedLogin>) => ({ ...NOTHING, ...named });

test('an address that names no login takes the only one, and of several none', () => {
  expect(findSession([ofRoot, ofAlice], NOTHING)).toBe(undefined);
  const lost = login('lost', 'bob', 'reconnect');
  expect(findSession([lost, ofAlice], NOTHING)).toBe(undefined);
  expect(findSession([lost], NOTHING)).toBe(lost);
  expect(findSession([], NOTHING)).toBe(undefined);
});

test('a login that has ended is replaced by another of its account', () => {
  const gone = at({ sid: 'gone', host: 'lab', user: 'alice' });
  expect(findSession([ofRoot, ofAlice], gone)).toBe(ofAlice);
  expect(findSession([ofRoot], gone)).toBe(undefined);
  expect(findSession([{ ...ofAlice, hostname: 'other' }], gone)).toBe(undefined);
});

test('an address without an account takes the only one of the host', () => {
  for (const sid of [null, 'gone']) {
    const named = at({ sid, host: 'lab' });
    expect(findSession([ofAlice, { ...ofRoot, hostname: 'other' }], named)).toBe(ofAlice);
    expect(findSession([ofRoot, ofAlice], named)).toBe(undefined);
  }
  expect(findSession([ofAlice], at({ sid: 'gone' }))).toBe(undefined);
});
