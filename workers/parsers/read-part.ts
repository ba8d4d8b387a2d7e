import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { unavailable, WindlassError } from '../../shared/errors/errors.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { StoredPart } from '../../shared/uploads/uploads.ts';
import { TableError } from './table/protocol.ts';

type Part = Pick<StoredPart, 'part' | 'object' | 'size' | 'digest'>;

/** Thrown where the store lost or changed a part: a fault of the store, and not of the file. */
export class DamagedPart extends TableError {
  readonly object: string;

  constructor({ part, object }: Part, what: string) {
    super({
      reason: `part ${part} ${what}`,
      hint: 'Upload the file again, and tell the administrator of the damaged object store.',
    });
    this.object = object;
  }
}

/**
 * Yields a part's bytes, and compares them with those that arrived. Throws DamagedPart where the store lost or changed
 * some, and `unavailable` where it has them all and did not send them all.
 */
export async function* readPart(
  objects: ObjectStore,
  part: Part,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let read = 0;
  for await (const piece of await open(objects, part, signal)) {
    read += (piece as Buffer).length;
    // The reader takes no more bytes than it expects: an excess would fail there, unexplained.
    if (read > part.size) break;
    hash.update(piece);
    yield piece as Buffer;
  }
  if (read !== part.size) {
    await checkPartSize(objects, part);
    throw unavailable('the object store did not send a whole part.', 'Try again later.', 2);
  }
  if (hash.digest('base64') !== part.digest)
    throw new DamagedPart(part, 'has other bytes in the object store than arrived');
}

/** Throws DamagedPart where the part's object has another size than arrived, or is gone. */
export async function checkPartSize(objects: ObjectStore, part: Part): Promise<void> {
  const found = await objects.stat(part.object);
  if (!found) throw gone(part);
  if (found.size === part.size) return;
  const [kept, arrived] = [found.size, part.size].map(size => size.toLocaleString('en'));
  throw new DamagedPart(
    part,
    `has other bytes in the object store (${kept} in all) than arrived (${arrived})`,
  );
}

async function open(objects: ObjectStore, part: Part, signal: AbortSignal): Promise<Readable> {
  return objects.get(part.object, { signal }).catch((error: unknown) => {
    throw error instanceof WindlassError && error.code === 'not_found' ? gone(part) : error;
  });
}

const gone = (part: Part) => new DamagedPart(part, 'is not in the object store any more');
