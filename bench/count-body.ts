import { once } from 'node:events';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';

/**
 * The length of an answer's body, read to its end and dropped. Not fetch(): its streams take more of the processor for a
 * gigabyte than the service that is to be measured.
 */
export async function countBody(
  url: string,
  headers: Record<string, string>,
): Promise<{ bytes: number; headers: IncomingHttpHeaders }> {
  const [answer] = (await once(get(url, { headers }), 'response')) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} for ${url}`);
  let bytes = 0;
  answer.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  await once(answer, 'end');
  return { bytes, headers: answer.headers };
}
