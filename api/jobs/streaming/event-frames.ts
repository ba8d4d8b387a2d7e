import {
  OUTPUT_STREAMS,
  type OutputOffsets,
  type OutputPiece,
  type OutputStream,
} from '../../../shared/jobs/output.ts';

/** Limit on the bytes of output in an event, so that a slow client receives whole ones before it counts as stalled. */
const MAX_EVENT = 16 << 10;

/** One server-sent event of output, encoded, and the offsets after it. */
export interface OutputFrame {
  bytes: Buffer;
  at: OutputOffsets;
}

/** A server-sent event (WHATWG HTML, 9.2.6); its id is the offsets of both streams. */
export function encodeEvent(event: string, at: OutputOffsets, data: string): string {
  return `event: ${event}\nid: ${at.stdout}-${at.stderr}\ndata: ${data}\n\n`;
}

/** The last event of a job that has ended. A client that sends its id knows all there is. */
export function encodeEnd(at: OutputOffsets): string {
  return `event: end\nid: ${at.stdout}-${at.stderr}-end\ndata: {}\n\n`;
}

/** Stored output as events. A character that is stored in part waits for the rest, unless the output is `complete`. */
export async function* encodeOutput(
  pieces: AsyncIterable<OutputPiece>,
  from: OutputOffsets,
  complete: boolean,
): AsyncGenerator<OutputFrame> {
  let at = { ...from };
  const rest: Record<OutputStream, Buffer> = { stdout: EMPTY, stderr: EMPTY };
  const times: Partial<Record<OutputStream, Date>> = {};
  const encode = (stream: OutputStream, bytes: Buffer): OutputFrame => {
    const data = describeOutput({ stream, offset: at[stream], time: times[stream] }, bytes);
    at = { ...at, [stream]: at[stream] + bytes.length };
    return { bytes: Buffer.from(encodeEvent('output', at, data)), at };
  };
  for await (const { stream, offset, bytes, time } of pieces) {
    times[stream] = time;
    // Pieces may overlap what was sent.
    const known = at[stream] + rest[stream].length;
    let left = Buffer.concat([rest[stream], bytes.subarray(Math.max(0, known - offset))]);
    for (;;) {
      const part = cutAtCharacter(left.subarray(0, MAX_EVENT));
      if (part.length === 0) break;
      yield encode(stream, part);
      left = left.subarray(part.length);
    }
    rest[stream] = left;
  }
  if (!complete) return;
  for (const stream of OUTPUT_STREAMS)
    if (rest[stream].length > 0) yield encode(stream, rest[stream]);
}

function describeOutput(
  place: { stream: OutputStream; offset: number; time: Date | undefined },
  bytes: Buffer,
): string {
  const text = decodeUtf8(bytes);
  const content = text === undefined ? { base64: bytes.toString('base64') } : { text };
  return JSON.stringify({ ...place, ...content });
}

/** The bytes up to the last whole UTF-8 character; where they are not UTF-8 at the end, all of them. */
export function cutAtCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte < 0xc0) continue;
    // Never the first byte of a character.
    if (byte < 0xc2 || byte > 0xf4) return bytes;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needs > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

const EMPTY = Buffer.alloc(0);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
