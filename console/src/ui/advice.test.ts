import { expect, test } from 'vitest';
import { adviceOf, describeRefusal } from './advice.ts';

test('hints for programs are not shown to people', () => {
  const hint = (text: string) => adviceOf({ code: 'conflict', hint: text });
  expect(hint('GET /api/jobs lists yours.')).toBeUndefined();
  expect(hint('Give "content-type": "video/mp4".')).toBeUndefined();
  expect(hint('Omit If-Match, or send `*`.')).toBeUndefined();
  expect(hint('Get it again and repeat the change.')).toBe('Get it again and repeat the change.');
  expect(hint('End some with DELETE /api/uploads/(uid). LIMIT_UPLOADS sets the limit.')).toBe(
    'LIMIT_UPLOADS sets the limit.',
  );
});

test('people are told what they can do at a page', () => {
  const hint = 'Open a session with POST /api/remotes.';
  expect(adviceOf({ code: 'session_not_found', hint })).toBe('Log in to the host again.');
  const may = 'A server administrator can allow that with "private": true in the host\'s entry.';
  expect(adviceOf({ code: 'host_not_allowed', hint: may })).toContain('private networks');
  const receiver =
    'Use an address that everybody reaches. An operator can allow others with WEBHOOK_PRIVATE.';
  expect(adviceOf({ code: 'host_not_allowed', hint: receiver })).toBe(receiver);
  const skip = 'Correct the listed frames, or give "on-bad-frame": "skip".';
  expect(adviceOf({ code: 'bad_frames', hint: skip })).toContain('left out');
  const unauthorized = {
    code: 'unauthorized',
    detail: 'Credentials required.',
    hint: 'Send them.',
  };
  expect(adviceOf(unauthorized)).toBeUndefined();
  expect(describeRefusal(unauthorized)).toContain('Do it again');
  expect(describeRefusal({ code: 'conflict', detail: 'It runs.' })).toBe('It runs.');
});

test('that no answer came is told in words for people, not for programmers', () => {
  const detail = 'No answer from 127.0.0.1:8722: Failed to fetch.';
  const hint = 'Is the address right, the service up, and a page of an origin that may call it?';
  const error = { code: 'unreachable', detail, hint };
  expect(describeRefusal(error)).toBe('No answer came from the service.');
  expect(adviceOf(error)).toBe('Is this computer on the network, and the service up?');
});

test('wrong fields are called as people see them', () => {
  const tell = (field: string, problem: string) =>
    describeRefusal({ code: 'invalid_input', detail: '', fields: [{ field, problem }] });
  expect(tell('name', 'must not be empty')).toBe('Name: must not be empty.');
  expect(tell('acl.readers.0.user', 'there is no user nobody')).toBe('There is no user nobody.');
  expect(tell('privateKey', 'cannot be opened with this passphrase')).toBe(
    'Private key: cannot be opened with this passphrase.',
  );
  expect(tell('images.3', 'is no absolute path')).toBe('Images.3: is no absolute path.');
});
