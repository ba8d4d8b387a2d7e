import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { sendProblem } from './problem.ts';

test('an error answer has no headers of the representation', async () => {
  const app = express().disable('etag');
  app.get('/', (_req, res) => {
    res.set({
      ETag: '"7"',
      'Last-Modified': new Date(0).toUTCString(),
      'Cache-Control': 'private, no-cache',
      'Content-Disposition': 'attachment; filename="a"',
    });
    const headers = { 'Retry-After': '2' };
    sendProblem(res, new WindlassError('unavailable', { headers }));
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  try {
    await new Promise(resolve => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const { status, headers } = await fetch(`http://127.0.0.1:${port}/`);
    const names = ['ETag', 'Last-Modified', 'Content-Disposition', 'Cache-Control', 'Retry-After'];
    expect([status, ...names.map(name => headers.get(name))]).toEqual([
      503,
      null,
      null,
      null,
      'no-store',
      '2',
    ]);
  } finally {
    server.close();
  }
});
