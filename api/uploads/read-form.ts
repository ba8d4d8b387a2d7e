import type { IncomingMessage } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { Busboy, type BusboyHeaders } from '@fastify/busboy';
import { WindlassError } from '../../shared/errors/errors.ts';
import { PartMeter } from '../../shared/uploads/part-meter.ts';
import { invalidInput } from '../http/validate.ts';
import { ReservedPartMeter } from './disk-reservations.ts';
import { bodyEndedEarly, pipeBody } from './pipe-body.ts';
import { type StoredBytes, type StoreOptions, storeMetered } from './store-part.ts';
import { UrlencodedForm } from './urlencoded-form.ts';

/** A form with a file, which is now stored, or with other fields. */
export type Form = { stored: StoredBytes } | { fields: Record<string, string> };

/** Bytes of a form beside its file, at most. */
const OVERHEAD_BYTES = 1 << 20;
/** Bytes of a form for each byte of a file in base64, each of whose characters may be escaped. */
const MAX_URLENCODED = 4;
/** A path has at most 4,096 characters, of up to 3 bytes. */
const LIMITS = { fieldNameSize: 100, fieldSize: 12_288, fields: 2, parts: 10, headerPairs: 50 };

/** The most bytes of a form that holds a file of at most `limit`. */
export const mostFormBytes = (req: IncomingMessage, limit: number): number =>
  (isUrlencoded(req) ? MAX_URLENCODED * limit : limit) + OVERHEAD_BYTES;

/** The most bytes of the file in a form of this length. */
export const mostFileBytes = (req: IncomingMessage, length: number): number =>
  isUrlencoded(req) ? Math.ceil((length * 3) / 4) : Math.max(0, length - OVERHEAD_BYTES);

const isUrlencoded = ({ headers }: IncomingMessage) =>
  !headers['content-type']?.trimStart().toLowerCase().startsWith('multipart/');

/**
 * Reads multipart/form-data (RFC 7578) or an urlencoded form: one `file`, in the latter in base64, streamed into the
 * store, or `sid` and `path`. `expected` is the digest of the whole form (RFC 9530, 2). Throws `invalid_input` for
 * other forms; no object is left then.
 */
export async function readForm(
  req: IncomingMessage,
  { objects, key, limit, expected, reservation, windowMs }: StoreOptions,
): Promise<Form> {
  const form = openForm(req);
  const whole = new PartMeter({ expected, limit: mostFormBytes(req, limit) });
  whole.on('error', () => {});
  const fields: Record<string, string> = {};
  let storing: Promise<StoredBytes> | undefined;
  let file: PartMeter | undefined;
  let refusal: Error | undefined;

  const refuse = (name: string, problem: string) => {
    refusal ??= invalidInput([{ field: name, problem }], 'Correct the named fields.');
    whole.destroy(refusal);
  };
  form.on('file', (name: string, stream: Readable) => {
    stream.on('error', () => file?.destroy(bodyEndedEarly()));
    const problem = storing ? 'is more than one file' : 'is not a known field';
    if (name !== 'file' || storing) {
      stream.resume();
      return refuse(name, problem);
    }
    file = new ReservedPartMeter({ limit, reservation });
    storing = storeMetered(objects, key, { meter: pipeFile(stream, file) });
    // A failed store ends the reading; its error is thrown below.
    storing.catch((error: Error) => whole.destroy(error));
  });
  form.on(
    'field',
    (name: string, value: string, nameTruncated: boolean, valueTruncated: boolean) => {
      if (nameTruncated || (name !== 'sid' && name !== 'path') || name in fields)
        return refuse(name, name in fields ? 'is given twice' : 'is not a known field');
      if (valueTruncated) return refuse(name, `is longer than ${LIMITS.fieldSize} bytes`);
      fields[name] = value;
    },
  );
  form.on('fieldsLimit', () => refuse('body', 'has too many fields'));
  form.on('partsLimit', () => refuse('body', 'has too many parts'));

  const stop = pipeBody(req, whole, windowMs);
  try {
    await new Promise<void>((resolve, reject) => {
      whole.once('error', reject);
      form.once('error', error => reject(asBadForm(error)));
      form.once('finish', resolve);
      whole.pipe(form);
    });
    // `finish` can be emitted before `error` although the last part was refused.
    if (refusal) throw refusal;
    if (!storing) return { fields };
    const stored = await storing;
    if (Object.keys(fields).length > 0) {
      await objects.remove(stored.object).catch(() => {});
      const problem = 'cannot be given beside file';
      throw invalidInput(
        Object.keys(fields).map(field => ({ field, problem })),
        'Give either file, or sid and path.',
      );
    }
    return { stored };
  } catch (error) {
    const reason = error instanceof Error ? error : new Error(String(error));
    file?.destroy(reason);
    const left = await storing?.catch(() => undefined);
    if (left) await objects.remove(left.object).catch(() => {});
    throw error;
  } finally {
    stop();
    whole.destroy();
  }
}

/** What reads a form; it emits the events of Busboy. */
function openForm(req: IncomingMessage): Writable {
  const form = isUrlencoded(req) ? new UrlencodedForm(LIMITS) : openMultipart(req);
  // It may fail again after its listeners were removed.
  form.on('error', () => {});
  return form;
}

function openMultipart(req: IncomingMessage): Writable {
  try {
    return new Busboy({
      headers: req.headers as BusboyHeaders,
      limits: LIMITS,
      isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
    });
  } catch (error) {
    throw asBadForm(error);
  }
}

function pipeFile(stream: Readable, meter: PartMeter): PartMeter {
  // After a failure the rest of the file is dropped.
  meter.once('close', () => {
    stream.unpipe(meter);
    stream.resume();
  });
  return stream.pipe(meter);
}

function asBadForm(cause: unknown): WindlassError {
  if (cause instanceof WindlassError) return cause;
  const reason = cause instanceof Error ? cause.message : 'malformed';
  return invalidInput(
    [{ field: 'body', problem: `is no multipart/form-data that can be read (${reason})` }],
    'See RFC 7578, or send the bytes as application/octet-stream.',
  );
}
