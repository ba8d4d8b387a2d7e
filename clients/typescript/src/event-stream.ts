import type { Bytes } from './lines.ts';

/** A server-sent event. */
export interface ServerSentEvent {
  event: string;
  data: string;
}

/** The connection is lost; `cause` says how. */
export class BrokenStream extends Error {}

/**
 * The whole events of a stream (WHATWG HTML, 9.2.6) as bytes come; one that breaks off is dropped. Ids are left out: a
 * follower of a job knows its offsets. Throws BrokenStream, also where nothing, not even a comment, comes for so many
 * ms.
 */
export async function* readEvents(
  body: ReadableStream<Bytes>,
  silenceMs: number,
): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let fields: Record<string, string> = {};
  try {
    for (;;) {
      const { done, value } = await readWithin(silenceMs, reader);
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { name, text } = readField(line);
        if (name === '' && text === '') {
          const { event = 'message', data } = fields;
          fields = {};
          if (data !== undefined) yield { event, data };
        } else if (name) {
          fields[name] =
            name === 'data' && fields.data !== undefined ? `${fields.data}\n${text}` : text;
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Without a regular expression: a line may be of many kB, and there may be thousands. */
function readField(given: string): { name: string; text: string } {
  const line = given.endsWith('\r') ? given.slice(0, -1) : given;
  const colon = line.indexOf(':');
  if (colon < 0) return { name: line, text: '' };
  return {
    name: line.slice(0, colon),
    text: line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1),
  };
}

/** Throws BrokenStream where nothing comes for so many ms, or the connection is lost. */
export async function readWithin(ms: number, reader: ReadableStreamDefaultReader<Bytes>) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came for ${ms / 1_000} s`)), ms);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (cause) {
    throw new BrokenStream('The stream broke off.', { cause });
  } finally {
    clearTimeout(timer);
  }
}
