import { request } from 'node:http';

/** Sends the first half of a body and destroys the socket, like a lost connection. */
export async function uploadHalfAndDisconnect({
  url,
  authorization,
  bytes,
}: {
  url: string;
  authorization: string;
  bytes: Buffer;
}): Promise<void> {
  const put = request(url, {
    method: 'PUT',
    agent: false,
    headers: {
      Authorization: authorization,
      'Content-Type': 'application/octet-stream',
      'Content-Length': bytes.length,
    },
  });
  // The expected connection error.
  put.on('error', () => {});
  put.on('response', response => response.resume());
  const closed = new Promise<void>(resolve => put.once('close', () => resolve()));
  await new Promise<void>(resolve =>
    put.write(bytes.subarray(0, bytes.length / 2), () => resolve()),
  );
  put.socket?.destroy();
  await closed;
}
