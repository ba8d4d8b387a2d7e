/** A file that is sent whole, by one request. */
export interface SentFile {
  /** What the address of the request ends with, decoded. */
  path: string;
  file: File;
  /** Told how many bytes have gone. */
  onProgress: (sent: number) => void;
}

/** The only one: files are sent one after the other. */
let current: SentFile | undefined;

/** Tells how far a file is while `send` sends it. */
export async function watchFile<T>(sent: SentFile, send: () => Promise<T>): Promise<T> {
  current = sent;
  try {
    return await send();
  } finally {
    if (current === sent) current = undefined;
  }
}

/** As `fetch`, of which a page does not learn how much of a file has gone. */
export function fetchAndTell(request: Request, init: RequestInit = {}): Promise<Response> {
  const path = decodeURIComponent(new URL(request.url).pathname);
  return current && request.method === 'PUT' && path.endsWith(current.path)
    ? sendFile(request, init.signal, current)
    : fetch(request, init);
}

function sendFile(
  request: Request,
  signal: AbortSignal | null | undefined,
  { file, onProgress }: SentFile,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open(request.method, request.url);
    request.headers.forEach((value, name) => {
      sending.setRequestHeader(name, value);
    });
    sending.upload.onprogress = ({ loaded }) => onProgress(loaded);
    sending.onload = () => resolve(answerOf(sending));
    sending.onerror = () => reject(new TypeError('Failed to fetch'));
    sending.onabort = () => reject(signal?.reason);
    signal?.addEventListener('abort', () => sending.abort());
    sending.send(file);
  });
}

function answerOf(sent: XMLHttpRequest): Response {
  const headers = sent
    .getAllResponseHeaders()
    .trim()
    .split('\r\n')
    .map(line => line.split(/: (.*)/s, 2) as [string, string]);
  const { status, statusText } = sent;
  return new Response(status === 204 ? null : sent.responseText, { status, statusText, headers });
}
