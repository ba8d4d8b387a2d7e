import { once } from 'node:events';
import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';

interface CountedBody {
  bytes: number;
  /** Names in lower case. */
  headers: Record<string, string>;
}

/**
 * Reads a response body with a Content-Length to its end and counts its bytes. All reads use one buffer: node:http
 * would take as much processor time for a gigabyte as the measured service.
 */
export async function countBody(
  url: string,
  given: Record<string, string>,
  status = 200,
): Promise<CountedBody> {
  const { hostname, port, pathname, search } = new URL(url);
  const head: Buffer[] = [];
  let answer: CountedBody | undefined;
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: {
      buffer: Buffer.allocUnsafe(1 << 18),
      callback: (length, buffer) => {
        if (answer) answer.bytes += length;
        else {
          // The next read overwrites the buffer.
          head.push(Buffer.from(buffer.subarray(0, length)));
          answer = readHead(Buffer.concat(head), { url, status });
        }
        if (answer && answer.bytes >= Number(answer.headers['content-length'])) socket.end();
        return true;
      },
    },
  });
  const headers = { ...given, Host: `${hostname}:${port}`, Connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`);
  await once(socket, 'close');
  if (answer?.bytes !== Number(answer?.headers['content-length']))
    throw new Error(`${url} was cut off`);
  return answer as CountedBody;
}

/** Parses the headers and counts the bytes after them; undefined until all headers have arrived. */
function readHead(
  bytes: Buffer,
  { url, status: expected }: { url: string; status: number },
): CountedBody | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end === -1) return undefined;
  const [status = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  if (!status.startsWith(`HTTP/1.1 ${expected} `)) throw new Error(`${status} for ${url}`);
  const headers = lines.map(line => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    bytes: bytes.length - end - HEAD_END.length,
    headers: Object.fromEntries(headers) as Record<string, string>,
  };
}
