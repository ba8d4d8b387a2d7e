import { WindlassError } from '../../shared/errors/errors.ts';
import type { Payload } from '../../shared/jobs/catalog.ts';
import type { Handler } from '../context.ts';
import { openRemoteFile } from '../remote-files/read-file.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/**
 * Reads a file or a range into the job's output: `{"size", "start", "end", "tag", "whole"}`, a line break, then the
 * bytes from start to before end.
 */
const file: Handler<'file'> = async context => {
  const { payload, signal } = context;
  const output = await context.output();
  // The file may have changed, and the client has been told its length.
  if (output.stored.stdout > 0) {
    throw new WindlassError('remote_connection_failed', {
      detail: `The reading of ${payload.path} was cut off.`,
      hint: 'Ask for the rest with Range.',
    });
  }
  const copy = async (session: RemoteSession) => {
    // Files are offered only where they can be browsed, although exec, which is faster, reads them.
    await session.requireSftp(signal);
    const { found, offset, length, whole } = await open(session, payload, signal);
    try {
      if (!whole && offset >= found.size) throw unsatisfiable(found.size);
      const end = Math.min(found.size, offset + (length ?? found.size));
      const head = { size: found.size, start: offset, end, tag: found.tag, whole };
      await output.append('stdout', Buffer.from(`${JSON.stringify(head)}\n`));
      for await (const piece of found.bytes) await output.append('stdout', piece as Buffer);
      return end - offset;
    } finally {
      found.bytes.destroy();
    }
  };
  const bytes = await withSession(context, copy, { reconnect: false });
  await output.flush();
  return { result: { bytes } };
};

export default file;

/** The file at the range, or at its beginning if the range was meant for another state. */
async function open(session: RemoteSession, payload: Payload<'file'>, signal: AbortSignal) {
  const { path, headOnly, range, ifRange } = payload;
  const whole = range === undefined;
  const placed = headOnly ? { offset: 0, length: 0 } : await placeRange(session, payload, signal);
  const found = await openRemoteFile(session, { path, ...placed, signal });
  if (whole || ifRange === undefined || ifRange === found.tag) return { found, ...placed, whole };
  found.bytes.destroy();
  const all = { offset: 0, length: undefined };
  return { found: await openRemoteFile(session, { path, signal }), ...all, whole: true };
}

/** Offset and length of the range. A suffix range needs the file's size first. */
async function placeRange(
  session: RemoteSession,
  { path, range }: Payload<'file'>,
  signal: AbortSignal,
): Promise<{ offset: number; length: number | undefined }> {
  const { first = 0, last, suffix } = range ?? {};
  if (suffix === undefined)
    return { offset: first, length: last === undefined ? undefined : last - first + 1 };
  const { size, bytes } = await openRemoteFile(session, { path, length: 0, signal });
  bytes.destroy();
  if (suffix === 0) throw unsatisfiable(size);
  return { offset: Math.max(0, size - suffix), length: suffix };
}

function unsatisfiable(size: number): WindlassError {
  return new WindlassError('range_not_satisfiable', {
    detail: `there are ${size} bytes.`,
    hint: `Ask for bytes 0 to ${Math.max(0, size - 1)}.`,
    extra: { size },
  });
}
