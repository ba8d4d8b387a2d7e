import type { Socket } from 'node:net';
import type ssh2 from 'ssh2';

/** Bytes that have come over a connection so far, which ssh2 does not tell. */
export function bytesReceived(client: ssh2.Client): number {
  const { _sock: socket } = client as unknown as { _sock?: Socket };
  return socket?.bytesRead ?? 0;
}
