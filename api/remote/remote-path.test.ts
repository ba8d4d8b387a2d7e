import type { Request } from 'express';
import { expect, it } from 'vitest';
import { remotePath } from './remote-path.ts';

it.each([
  ['/api/remotes/1/browse/home/carol', '/home/carol'],
  ['/remotes/1/browse', '/'],
  ['/remotes/1/browse/%2Fhome%2Fbrowse/x?y=/browse/z', '/home/browse/x'],
  // Routes are matched without case.
  ['/api/Remotes/1/Browse/home/carol', '/home/carol'],
  // The absolute form of a target (RFC 9112, 3.2.2), as proxies send it.
  ['http://browse.example.org/api/remotes/1/browse/home/carol', '/home/carol'],
])('the path of %s on the host is %s', (originalUrl, path) => {
  expect(remotePath({ originalUrl } as Request, 'browse')).toBe(path);
});
