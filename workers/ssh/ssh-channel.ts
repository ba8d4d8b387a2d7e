import type ssh2 from 'ssh2';
import { privateParts } from '../../shared/process/private-parts.ts';
import type { ExecChannel } from '../host-agent/exec-channel.ts';

/** An exec channel of ssh2 that can also send signals to its command. */
export interface SshChannel extends ExecChannel {
  signal(name: 'TERM' | 'KILL'): void;
}

/** `release` is called when the channel has closed. */
export function toExecChannel(channel: ssh2.ClientChannel, release: () => void): SshChannel {
  const closed = new Promise<{ code: number | null; signal: string | null }>(resolve => {
    let code: number | null = null;
    let signal: string | null = null;
    channel.on('exit', (exitCode: number | null, exitSignal?: string) => {
      code = exitCode ?? null;
      signal = exitSignal ?? null;
    });
    channel.once('close', () => {
      release();
      resolve({ code, signal });
    });
  });
  channel.on('error', () => channel.destroy());
  return {
    stdin: channel,
    stdout: channel,
    stderr: channel.stderr,
    closed,
    destroy: () => {
      // Bytes that nobody reads would hold back the channel's close for ever.
      channel.resume();
      channel.stderr.resume();
      channel.destroy();
    },
    signal: name => sendSignal(channel, name),
  };
}

/**
 * RFC 4254, 6.9. ssh2's own signal() does nothing after the end of standard input, for no reason in 5.3. If the channel
 * is gone, so is the command.
 */
function sendSignal(channel: ssh2.ClientChannel, name: 'TERM' | 'KILL'): void {
  const { protocol, outgoing } = partsOf(channel);
  if (channel.writable) channel.signal(name);
  if (outgoing.state !== 'eof') return;
  try {
    protocol.signal(outgoing.id, name);
  } catch {
    // The connection has just gone.
  }
}

function partsOf(channel: ssh2.ClientChannel) {
  type Parts = { _client: { _protocol?: object }; outgoing: { id: number; state: string } };
  const { _client, outgoing } = privateParts<Parts>('a channel of ssh2', channel, [
    '_client',
    'outgoing',
  ]);
  type Protocol = { signal(id: number, name: string): void };
  const { _protocol } = _client;
  const protocol = privateParts<Protocol>('the protocol of ssh2', _protocol, ['signal']);
  return { protocol, outgoing };
}
