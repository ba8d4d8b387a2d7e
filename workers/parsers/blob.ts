import type { Parser } from './parser.ts';
import { findSinglePart, readUploadedFile } from './upload-files.ts';

/** Stores each file unchanged. A single part's object becomes the artifact's; several parts are concatenated. */
const blob: Parser<'blob'> = async (
  { file, parts, size },
  { job, upload, aid, newKey, reportProgress },
) => {
  const { objects, database } = job.worker;
  const stored = { db: database.db, objects };
  if (parts === 1)
    return [{ aid, kind: 'file', object: await findSinglePart(stored, { upload, file }), size }];
  const object = newKey();
  const bytes = readUploadedFile(stored, {
    upload,
    file,
    signal: job.signal,
    onBytes: read => reportProgress(read / size),
  });
  await objects.put(object, bytes, { size, signal: job.signal });
  return [{ aid, kind: 'file', object, size }];
};

export default blob;
