import type { Socket } from 'node:net';
import type ssh2 from 'ssh2';
import { privateParts } from '../../shared/process/private-parts.ts';
import { NoAnswer } from '../host-agent/protocol/no-answer.ts';
import { SshError } from './ssh-errors.ts';

/**
 * The time to open a channel and accept its command, then the connection counts as lost. If BUSY_BYTES arrived
 * meanwhile, only after several such periods, because on a slow link much may precede the answer.
 */
const OPEN_MS = 20_000;
const MAX_OPEN_PERIODS = 6;
const BUSY_BYTES = 65_536;

/** What the requests of one connection for channels share. */
export interface ChannelOpening {
  /** Default 20,000. */
  openMs?: number;
  /** Called at the connection's close. A listener on the client for each channel would exceed its limit. */
  closeListeners: Set<() => void>;
}

/**
 * The server's answer to a request for a channel; without one the connection is closed. `sent`: a failed request may
 * have reached the host with its command.
 */
export function awaitChannel<T>(
  client: ssh2.Client,
  { sent, openMs = OPEN_MS, closeListeners }: ChannelOpening & { sent: boolean },
  ask: (done: (error: SshError | undefined, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onClose = () => settle(new SshError('The connection was lost.', { sent }));
    let periods = 0;
    let before = bytesReceived(client);
    const check = () => {
      const now = bytesReceived(client);
      if (++periods < MAX_OPEN_PERIODS && now - before > BUSY_BYTES) {
        before = now;
        timer = setTimeout(check, openMs);
        return;
      }
      const waited = `within ${(periods * openMs) / 1_000} s`;
      const cause = new NoAnswer();
      settle(new SshError(`The host opened no channel ${waited}.`, { sent, cause }));
      client.end();
      client.destroy();
    };
    let timer = setTimeout(check, openMs);
    const settle = (error: SshError | undefined, value?: T) => {
      clearTimeout(timer);
      closeListeners.delete(onClose);
      if (error) reject(error);
      else resolve(value as T);
    };
    closeListeners.add(onClose);
    try {
      ask(settle);
    } catch (cause) {
      // ssh2 throws synchronously when the connection is gone.
      settle(new SshError('The connection was lost.', { sent: false, cause }));
    }
  });
}

/** Bytes that have come over a connection so far, which ssh2 does not tell. */
function bytesReceived(client: ssh2.Client): number {
  type Parts = { _sock: Socket };
  return privateParts<Parts>('a client of ssh2', client, ['_sock'])._sock.bytesRead;
}
