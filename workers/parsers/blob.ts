import type { Parser } from './parser.ts';
import { onlyPart, readFileOf } from './read-parts.ts';

/** Each file as it is. The object of a single part becomes the artifact's; several are joined into a new one. */
const blob: Parser<'blob'> = async ({ file, parts, size }, { job, upload, aid, newKey, tell }) => {
  const { objects, database } = job.worker;
  if (parts === 1)
    return [{ aid, kind: 'file', object: await onlyPart(database.db, upload, file), size }];
  const object = newKey();
  const bytes = readFileOf(
    { db: database.db, objects },
    { upload, file, signal: job.signal, onBytes: read => tell(read / size) },
  );
  await objects.put(object, bytes, { size, signal: job.signal });
  return [{ aid, kind: 'file', object, size }];
};

export default blob;
