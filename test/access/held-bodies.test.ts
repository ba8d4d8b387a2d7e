import { expect, test } from 'vitest';
import { type BrowserLogin, logIn } from '../harness/browser/browser-login.ts';
import { RawConnection } from '../harness/clients/raw-http.ts';
import { TusClient } from '../harness/clients/tus.ts';
import { beginUpload, makeModel } from '../harness/clients/uploads.ts';
import { addUser, PASSWORD } from '../harness/clients/users.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { outlastBrevity, waitFor } from '../harness/wait-for.ts';

const JSON_BODY = 'Content-Type: application/json';
const cookieOf = ({ cookies }: BrowserLogin) =>
  `Cookie: ${[...cookies].map(([name, value]) => `${name}=${value}`).join('; ')}`;
const BYTES = 'Content-Type: application/octet-stream';

/** Bodies that are stored as they come: their senders lose what they had while the last byte is held back. */
describeStack(missingPrograms('sshd'), 'a body of somebody who loses the right to it', form => {
  const { stack, client: admin, sshd } = useRemoteStack(form, { env: { LIMIT_REQUESTS: '0' } });
  const database = useStackDatabase(stack);

  async function begin() {
    const { username, client } = await addUser(admin);
    const { mid, pid } = await makeModel(client);
    const { token, id } = await client.post<{ token: string; id: string }>('/api/users/-/tokens', {
      name: 'a program',
      scope: 'write',
    });
    return { username, client, mid, pid, bearer: `Bearer ${token}`, token: id };
  }
  type Somebody = Awaited<ReturnType<typeof begin>>;

  const asks: Record<string, (somebody: Somebody) => Promise<{ line: string; fields: string[] }>> =
    {
      'a parameter': async ({ mid }) => ({
        line: `PUT /api/models/${mid}/parameters/late`,
        fields: [JSON_BODY],
      }),
      'a bookmark': async ({ pid }) => ({
        line: `POST /api/projects/${pid}/bookmarks`,
        fields: [JSON_BODY],
      }),
      'an event': async () => ({ line: 'POST /api/events/late', fields: [JSON_BODY] }),
      'a part': async ({ client, mid }) => ({
        line: `PUT /api/uploads/${await beginUpload(client, mid, ['late'])}/files/0/parts/0`,
        fields: [BYTES],
      }),
      'bytes by tus': async ({ client, mid }) => {
        const begun = await new TusClient(client).create(20, { mid, aid: 'late', parser: 'blob' });
        expect(begun.status).toBe(201);
        const fields = ['Tus-Resumable: 1.0.0', 'Upload-Offset: 0'];
        return {
          line: `PATCH ${begun.headers.get('Location')}`,
          fields: [...fields, 'Content-Type: application/offset+octet-stream'],
        };
      },
      'a file on the host': async ({ client }) => ({
        line: `PUT /api/remotes/${await openSession(client, sshd)}/file${sshd.home}/late`,
        fields: [BYTES],
      }),
    };
  const losses: Record<string, (somebody: Somebody) => Promise<unknown>> = {
    disabling: async ({ username }) => {
      const body = JSON.stringify({ disabled: true });
      const { status } = await admin.fetch(`/api/users/${username}`, { method: 'PUT', body });
      expect(status).toBe(200);
    },
    'a token that is deleted': ({ client, token }) => client.delete(`/api/users/-/tokens/${token}`),
  };

  /** A part of 4 bytes, of which the last one is to be sent. */
  async function beginPart(uid: string, ...credentials: string[]): Promise<RawConnection> {
    const connection = new RawConnection(stack.url);
    const head = [
      `PUT /api/uploads/${uid}/files/0/parts/0 HTTP/1.1`,
      `Host: ${new URL(stack.url).host}`,
      ...credentials,
      'Content-Length: 4',
      BYTES,
      'Expect: 100-continue',
    ];
    connection.write([...head, '', ''].join('\r\n'));
    expect((await connection.next({ bare: true }))?.status).toBe(100);
    connection.write('abc');
    return connection;
  }

  test('a token that is deleted: not a whole part that waits for its turn', async () => {
    const { client, mid, bearer, token } = await begin();
    const beginOne = (aid: string) => beginUpload(client, mid, [aid]);
    // As many as a user may have under way in one process.
    const uids = await Promise.all(Array.from({ length: 16 }, (_, n) => beginOne(`slow-${n}`)));
    const slow = await Promise.all(uids.map(uid => beginPart(uid, `Authorization: ${bearer}`)));
    const uid = await beginOne('whole');
    const waiting = fetch(`${stack.url}/api/uploads/${uid}/files/0/parts/0`, {
      method: 'PUT',
      headers: { Authorization: bearer, 'Content-Type': 'application/octet-stream' },
      body: 'abcd',
    });
    await outlastBrevity();
    await client.delete(`/api/users/-/tokens/${token}`);
    slow[0]?.end();
    expect((await waiting).status).toBe(401);
    for (const connection of slow) connection.end();
    expect(await database`select 1 from upload_parts where upload = ${uid}`).toEqual([]);
  });

  for (const [what, ask] of Object.entries(asks))
    for (const [loss, lose] of Object.entries(losses))
      test(`${loss}: not ${what}`, async () => {
        const somebody = await begin();
        const { line, fields } = await ask(somebody);
        const body = '{"value": 1234567 }\n';
        const connection = new RawConnection(stack.url);
        const head = [
          `${line} HTTP/1.1`,
          `Host: ${new URL(stack.url).host}`,
          `Authorization: ${somebody.bearer}`,
          `Content-Length: ${body.length}`,
          ...fields,
          // The answer to it says that the request was let in.
          'Expect: 100-continue',
        ];
        connection.write([...head, '', ''].join('\r\n'));
        expect((await connection.next({ bare: true }))?.status).toBe(100);
        connection.write(body.slice(0, -1));
        await lose(somebody);
        connection.write(body.slice(-1));
        expect((await connection.next())?.status).toBe(401);
        connection.end();
        const [left] = await database`
          select (select count(*)::int from artifacts where model = ${somebody.mid}) as artifacts,
            (select count(*)::int from bookmarks where project = ${somebody.pid}) as bookmarks,
            (select count(*)::int from upload_parts p join uploads u on u.uid = p.upload where u.model = ${somebody.mid}) as parts,
            (select count(*)::int from jobs where owner = ${somebody.username} and kind = 'write-file') as files`;
        expect(left).toEqual({ artifacts: 0, bookmarks: 0, parts: 0, files: 0 });
      });

  test('one that was deleted before it would have ended by itself was not good', async () => {
    const { client, mid, token, bearer } = await begin();
    const uid = await beginUpload(client, mid, ['deleted']);
    await database`update tokens set expires = now() + interval '3 seconds' where id = ${token}`;
    const connection = await beginPart(uid, `Authorization: ${bearer}`);
    await client.delete(`/api/users/-/tokens/${token}`);
    await database`select pg_sleep(3.2)`;
    connection.write('d');
    expect((await connection.next())?.status).toBe(401);
    connection.end();
  });

  test('a login that ends by itself while a long body comes was good when it began, unless its user left', async () => {
    for (const leaves of [false, true]) {
      const { username, client, mid } = await begin();
      const login = await logIn(stack, { username, password: PASSWORD });
      const uid = await beginUpload(client, mid, ['by login']);
      await database`update users set issuer = 'i', subject = ${username} where username = ${username}`;
      await database`update logins set expires = now() + interval '3 seconds' where username = ${username}`;
      const origin = new URL(stack.url).origin;
      const connection = await beginPart(uid, cookieOf(login), `Origin: ${origin}`);
      if (leaves) await login.fetch('/api/logout', { method: 'DELETE' });
      await database`select pg_sleep(3.2)`;
      connection.write('d');
      expect((await connection.next())?.status).toBe(leaves ? 401 : 200);
      connection.end();
    }
  });

  test('a token that ends by itself while a long body comes was good when it began', async () => {
    const { client, mid, token, bearer } = await begin();
    const uid = await beginUpload(client, mid, ['long']);
    await database`update tokens set expires = now() + interval '2 seconds' where id = ${token}`;
    const connection = await beginPart(uid, `Authorization: ${bearer}`);
    const look = () => stack.api('/api/users/-', { headers: { Authorization: bearer } });
    await waitFor(async () => (await look()).status === 401, { what: 'the token to end' });
    connection.write('d');
    expect((await connection.next())?.status).toBe(200);
    connection.end();
  });
});
