import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv6, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { type Database, describeOutage, isDatabaseDown, openDatabase } from './connect.ts';

let server: Server | undefined;
let database: Database | undefined;

afterEach(async () => {
  await database?.close();
  server?.close();
});

/** A message of PostgreSQL's protocol, version 3. */
function message(type: string, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
const ready = (state: 'I' | 'T') => message('Z', Buffer.from(state));

/** A database that accepts logins, begins transactions, and answers other statements as the test says. */
async function serve(
  onStatement: (socket: Socket) => unknown,
  onLogin = (socket: Socket) => {
    socket.write(Buffer.concat([message('R', Buffer.alloc(4)), ready('I')]));
  },
  host = '127.0.0.1',
): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  server = createServer(socket => {
    connections++;
    let greeted = false;
    socket.on('error', () => {});
    socket.on('data', data => {
      if (!greeted) {
        greeted = true;
        onLogin(socket);
      } else if (data.includes('begin')) {
        socket.write(Buffer.concat([message('C', Buffer.from('BEGIN\0')), ready('T')]));
      } else onStatement(socket);
    });
  }).listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgres://user:secret@${isIPv6(host) ? `[${host}]` : host}:${port}/database`,
    connections: () => connections,
  };
}

test('the pool survives refused connects', async () => {
  const { url } = await serve(() => {});
  server?.close();
  database = openDatabase(url, { max: 1 });
  for (let tries = 0; tries < 4; tries++) {
    const error = await database.sql`select 1`.catch((reason: unknown) => reason);
    expect(isDatabaseDown(error)).toBe(true);
  }
});

test('a database lost inside a transaction ends the query, not the process', async () => {
  const { url, connections } = await serve(socket => socket.end());
  database = openDatabase(url, { max: 1 });
  for (let tries = 1; tries <= 3; tries++) {
    const error = await database.sql.begin(tx => tx`select 1`).catch((reason: unknown) => reason);
    expect(isDatabaseDown(error)).toBe(true);
    expect(connections()).toBe(tries);
  }
});

/** One column of text. */
function answer(
  rows: string[],
  end: Buffer[] = [message('C', Buffer.from(`SELECT ${rows.length}\0`)), ready('I')],
): Buffer {
  const field = Buffer.alloc(18);
  field.writeInt32BE(25, 6);
  const one = Buffer.from([0, 1]);
  const data = rows.map(text => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(text.length);
    return message('D', Buffer.concat([one, length, Buffer.from(text)]));
  });
  return Buffer.concat([
    message('T', Buffer.concat([one, Buffer.from('word\0'), field])),
    ...data,
    ...end,
  ]);
}

const hasIPv6 = Object.values(networkInterfaces()).some(all =>
  all?.some(({ address }) => address === '::1'),
);

test.skipIf(!hasIPv6)('a database may have an IPv6 address', async () => {
  const { url } = await serve(socket => socket.write(answer(['here'])), undefined, '::1');
  database = openDatabase(url, { max: 1 });
  expect([...(await database.sql.unsafe('select'))]).toEqual([{ word: 'here' }]);
  expect(await database.direct.query('select')).toEqual([{ word: 'here' }]);
});

test('a login that the database refuses is an outage, and tells why', async () => {
  for (const [code, said] of [
    ['28P01', 'the database refuses the login of DATABASE_URL'],
    ['28000', 'the database refuses the login of DATABASE_URL'],
    ['3D000', 'the server has no database of the name in DATABASE_URL'],
  ] as const) {
    const refusal = Buffer.from(`SFATAL\0C${code}\0Mno\0\0`);
    const { url } = await serve(
      () => {},
      socket => socket.end(message('E', refusal)),
    );
    const refused = openDatabase(url, { max: 1 });
    for (const ask of [() => refused.sql.unsafe('select'), () => refused.direct.query('select')]) {
      const error = await ask().catch((reason: unknown) => reason);
      expect([isDatabaseDown(error), describeOutage(error)]).toEqual([true, said]);
    }
    await refused.close();
    server?.close();
  }
});

test('an interrupted result does not affect the next one', async () => {
  let asked = 0;
  const { url } = await serve(socket => {
    if (++asked > 1) return socket.write(answer(['whole']));
    socket.write(answer(['cut', 'off'], []), () => socket.end());
  });
  database = openDatabase(url, { max: 1 });
  const cut = await database.sql.unsafe('select').catch((reason: unknown) => reason);
  expect(isDatabaseDown(cut)).toBe(true);
  expect([...(await database.sql.unsafe('select'))]).toEqual([{ word: 'whole' }]);
});

test('a database that is lost to a single connection counts as down', async () => {
  const { url } = await serve(socket => socket.end());
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  const lost = await client.query('select').catch((reason: unknown) => reason);
  expect(isDatabaseDown(lost)).toBe(true);
  server?.close();
  const stopping = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0');
  const other = await serve(
    () => {},
    socket => socket.end(message('E', stopping)),
  );
  const refused = await new pg.Client(other.url).connect().catch((reason: unknown) => reason);
  expect(isDatabaseDown(refused)).toBe(true);
});

test('a database that is unreachable from the direct connection counts as down', async () => {
  const { url } = await serve(() => {});
  database = openDatabase(url, { max: 1 });
  const { direct } = database;
  const fail = () => direct.query('select').catch((reason: unknown) => reason);
  server?.close();
  const refused = await fail();
  expect(refused).toMatchObject({ code: 'ECONNREFUSED' });
  expect(isDatabaseDown(refused)).toBe(true);
});

test('a database that does not answer the direct connection counts as down', async () => {
  let asked = 0;
  const { url } = await serve(socket => {
    // Answers the first statement, which sets the connection up, and no other.
    if (++asked === 1) socket.write(answer([]));
  });
  database = openDatabase(url, { max: 1 });
  const { direct } = database;
  const ask = () => direct.query('select').catch((reason: unknown) => reason);
  // The second waits behind the first.
  for (const silent of await Promise.all([ask(), ask()])) {
    expect(silent).toMatchObject({ message: 'Query read timeout' });
    expect(isDatabaseDown(silent)).toBe(true);
  }
});

test('a missing file does not count as a database that is down', () => {
  expect(isDatabaseDown(Object.assign(new Error('spawn ffmpeg'), { code: 'ENOENT' }))).toBe(false);
});

test('statements that are never answered delay others, and stop none', async () => {
  let asked = 0;
  const { url, connections } = await serve(socket => {
    if (++asked > 2) socket.write(answer(['here']));
  });
  database = openDatabase(url, { max: 4, usual: 2 });
  const { sql } = database;
  const lost = [sql.unsafe('select'), sql.begin(tx => tx.unsafe('select'))].map(statement =>
    statement.catch((reason: unknown) => reason),
  );
  for (let n = 0; n < 5; n++) expect([...(await sql.unsafe('select'))]).toEqual([{ word: 'here' }]);
  expect(connections()).toBe(3);
  await database.close();
  for (const reason of await Promise.all(lost)) expect(isDatabaseDown(reason)).toBe(true);
});

test('statements that a database refuses while it starts are all answered', async () => {
  const starting = Buffer.from('SFATAL\0C57P03\0Mthe database system is starting up\0\0');
  const { url } = await serve(
    () => {},
    socket => {
      socket.write(message('E', starting));
      // As PostgreSQL does, it ends a little later: the client is asked again meanwhile.
      setTimeout(() => socket.end(), 5);
    },
  );
  database = openDatabase(url, { max: 2 });
  const { sql } = database;
  const ask = async () => {
    for (let tries = 0; tries < 5; tries++) {
      const error = await sql.unsafe('select').catch((reason: unknown) => reason);
      expect(isDatabaseDown(error)).toBe(true);
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
});
