import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import { startNginx, startNginxAtPath } from '../harness/servers/nginx.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';

describeUnless(missingPrograms('nginx'), 'nginx as docs/operations.md has it for a path', () => {
  test('it strips the path, and passes on the rest as it came', async () => {
    const asked: (string | undefined)[] = [];
    const server = createServer(({ url }, res) => {
      asked.push(url);
      res.end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const nginx = await startNginxAtPath(await findFreePort(), port);
    try {
      const paths = ['/', '/api/models/m/tables/a%2Fb%20%252F/rows?filter=n%2Fm:lt:5', '/api//x'];
      for (const path of paths) expect((await fetch(`${nginx.url}/windlass${path}`)).ok).toBe(true);
      expect(asked).toEqual(paths);
    } finally {
      await nginx.stop();
      server.close();
    }
  });
});

describeUnless(missingPrograms('nginx'), 'nginx as docs/fleet.md has it', () => {
  test('waits for answers that are held until work has ended, longer than for others', async () => {
    const server = createServer(({ url }, res) => {
      if (url === '/healthz') res.end();
      else setTimeout(() => res.end('held'), 2_500);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const nginx = await startNginx(await findFreePort(), [port, port], '1s');
    try {
      const table = '/models/m/tables/a%2Fb';
      const held = [
        ...['/remotes/launch', '/remotes/s/file/home/me/data', '/jobs/j'],
        '/remotes/s/videos/v/status',
        ...['rows', 'data', 'histogram', 'series', 'groupby'].map(
          end => `${table}/${end}?filter=x`,
        ),
      ].flatMap(path => [path, `/api${path}`]);
      const ask = async (path: string) => (await fetch(`${nginx.url}${path}`)).status;
      const statuses = await Promise.all([...held, '/api/projects'].map(ask));
      expect(statuses).toEqual([...held.map(() => 200), 504]);
    } finally {
      await nginx.stop();
      server.close();
    }
  });
});
