import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { OBJECT_PREFIXES } from '../../shared/jobs/object-keys.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { findReferenced } from '../../workers/upkeep/object-references.ts';
import { OrphanCollector } from '../../workers/upkeep/orphaned-objects.ts';
import { DeletionSweep } from '../../workers/upkeep/pending-deletions.ts';
import { TusClient } from '../harness/clients/tus.ts';
import {
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
} from '../harness/clients/uploads.ts';
import { openStackDatabase, stackDatabaseUrl } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { connectClient } from '../harness/hosts/remote.ts';
import type { Random } from '../harness/random.ts';
import { missingMinio, startMinio, type TestMinio } from '../harness/servers/minio.ts';
import { describeUnless } from '../harness/skip.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { insist, isServing } from './insist.ts';
import { isFull, withSeed } from './settings.ts';
import { type FormatFile, makeFormatFiles } from './table-files.ts';

const PROTOCOLS = ['parts', 'tus'] as const;
const VICTIMS = ['windlass-api', 'windlass-worker', 'postgres', 'store'] as const;
/** The long form kills a hundred times during each format, the short one once. */
const ROUNDS = isFull ? 100 : 1;
const PARTS = 3;
const DAY_MS = 86_400_000;

describeUnless(missingMinio(), 'uploads of every format while something is killed', () => {
  const directory = makeTempDir('formats');
  let minio: TestMinio;
  let settings: Record<string, string>;
  let stack: Stack;
  let client: Client;
  let mid: string;
  let files: (FormatFile & { digest: string })[];

  beforeAll(async () => {
    minio = await startMinio();
    settings = {
      S3_ENDPOINT: minio.endpoint,
      S3_ACCESS_KEY: minio.accessKey,
      S3_SECRET_KEY: minio.secretKey,
    };
    stack = await startStack({ env: settings });
    client = connectClient(stack);
    ({ mid } = await makeModel(client));
    const made = await makeFormatFiles(client, { mid, directory: directory.path });
    files = [];
    for (const file of made) {
      const aid = `unharmed ${file.format}`;
      await upload(file, { aid, protocol: 'parts' });
      files.push({ ...file, digest: (await digestOf(file, aid)) ?? '' });
    }
  }, 120_000);
  afterAll(async () => {
    await stack?.stop();
    await minio?.stop();
    directory.remove();
  });

  test(
    'arrives bit for bit, is seen whole or not at all, and leaves nothing',
    { timeout: 120_000 + ROUNDS * 10 * 30_000 },
    () =>
      withSeed(async random => {
        let kills = 0;
        for (let round = 0; round < ROUNDS; round++)
          for (const [i, file] of files.entries()) {
            const protocol = PROTOCOLS[(i + round) % PROTOCOLS.length] ?? 'tus';
            const victim = VICTIMS[kills++ % VICTIMS.length] ?? 'store';
            const aid = `${file.format} ${protocol} ${round}`;
            const done = new AbortController();
            const looking = expectNeverHalf(file, aid, done.signal);
            const [uploaded] = await Promise.allSettled([
              upload(file, { aid, protocol }),
              kill(victim, random),
            ]);
            done.abort();
            await looking;
            if (uploaded.status === 'rejected') throw uploaded.reason;
            const digest = await insist(aid, () => digestOf(file, aid));
            expect([aid, victim, digest]).toEqual([aid, victim, file.digest]);
            await isServing(client);
          }
        await expectNoOrphans();
      }),
  );

  async function kill(victim: (typeof VICTIMS)[number], random: Random): Promise<void> {
    await delay(random.between(0, 1_200));
    if (victim !== 'store') return void stack.kill(victim);
    await minio.down();
    await delay(random.between(0, 500));
    await minio.up();
  }

  /** What a careful client does: it asks what is there, and goes on from that. Resolves when the parse has succeeded. */
  async function upload(
    file: FormatFile,
    { aid, protocol }: { aid: string; protocol: (typeof PROTOCOLS)[number] },
  ): Promise<void> {
    const uid = protocol === 'parts' ? await uploadParts(file, aid) : await uploadByTus(file, aid);
    const record = await insist(`the parse of ${aid}`, async () => {
      const found = await readUpload(client, uid);
      return found.state === 'done' || found.state === 'failed' ? found : undefined;
    });
    expect(record.error ?? null).toBeNull();
  }

  async function uploadParts({ parser, bytes }: FormatFile, aid: string): Promise<string> {
    const body = { mid, input: true, parser, aids: [aid] };
    const { id: uid } = await insist(`${aid} to begin`, () =>
      client.post<{ id: string }>('/api/uploads', body),
    );
    const size = Math.ceil(bytes.length / PARTS);
    await insist(`${aid} to be accepted`, async () => {
      const record = await readUpload(client, uid);
      if (record.job) return true;
      for (let part = 0; part < PARTS; part++) {
        if (record.parts.some(({ pid }) => pid === part)) continue;
        const piece = bytes.subarray(part * size, (part + 1) * size);
        await putPart(client, partPath(uid, 0, part), piece);
      }
      return (await finishUpload(client, uid, [PARTS])).status === 202 || undefined;
    });
    return uid;
  }

  async function uploadByTus({ parser, bytes }: FormatFile, aid: string): Promise<string> {
    const tus = new TusClient(client);
    const path = await insist(`${aid} to begin`, async () => {
      const answer = await tus.create(bytes.length, { mid, parser, aid, input: 'true' });
      return answer.headers.get('Location') ?? undefined;
    });
    await insist(`${aid} to be accepted`, async () => {
      const offset = await tus.offset(path);
      if (offset < bytes.length) await tus.patch(path, offset, bytes.subarray(offset));
      return offset === bytes.length || undefined;
    });
    return path.split('/').at(-1) ?? '';
  }

  /** The digest of what the parser made, as the service gives it; undefined where nothing is there. */
  async function digestOf({ made }: FormatFile, aid: string): Promise<string | undefined> {
    const path = `/api/models/${mid}${made.replace('$', encodeURIComponent(aid))}`;
    const answer = await client.fetch(path, { headers: { Accept: 'text/csv, */*' } });
    if (answer.status === 404) return undefined;
    if (!answer.ok) throw new Error(await answer.text());
    const bytes = Buffer.from(await answer.arrayBuffer());
    return createHash('sha256').update(bytes).digest('hex');
  }

  async function expectNeverHalf(
    file: FormatFile & { digest: string },
    aid: string,
    done: AbortSignal,
  ): Promise<void> {
    while (!done.aborted) {
      // While something is unreachable there may be no answer.
      const seen = await digestOf(file, aid).catch(() => undefined);
      expect([undefined, file.digest]).toContain(seen);
      await delay(100, undefined, { signal: done }).catch(() => {});
    }
  }

  /** After the time that upkeep leaves them, the store has the objects that rows refer to, and no other. */
  async function expectNoOrphans(): Promise<void> {
    const objects = await openObjectStore(readConfig(settings));
    const database = openDatabase(stackDatabaseUrl(stack));
    const sql = openStackDatabase(stack);
    const context = {
      database,
      objects: aged(objects),
      stopping: new AbortController().signal,
      log: createLog({ level: 'silent', name: 'test' }),
    };
    try {
      await new OrphanCollector(context).markSome();
      await sql`update pending_deletions set due = now() - interval '1 minute'`;
      await new DeletionSweep({ ...context, objects }).run();
      const keys: string[] = [];
      for (const prefix of OBJECT_PREFIXES)
        for await (const { key } of objects.list(prefix)) keys.push(key);
      const referenced = await findReferenced(database.db, keys);
      expect(keys.filter(key => !referenced.has(key))).toEqual([]);
      expect(keys.length).toBeGreaterThanOrEqual(files.length);
    } finally {
      await sql.end();
      await database.close();
    }
  }
});

/** Its objects are a day older. */
function aged(objects: ObjectStore): ObjectStore {
  return new Proxy(objects, {
    get(target, name) {
      if (name === 'list')
        return async function* (prefix: string) {
          for await (const found of target.list(prefix))
            yield { ...found, modified: new Date(found.modified.getTime() - DAY_MS) };
        };
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
