import type ssh2 from 'ssh2';
import { privateParts } from '../../shared/process/private-parts.ts';
import { requirePackage } from '../../shared/process/require-package.ts';
import type { Transport } from './limit-login.ts';

type Handler<A extends unknown[]> = (protocol: unknown, ...message: A) => void;
type DataHandler = Handler<[recipient: number, data: Buffer, type?: number]>;

/** Handlers of RFC 4254 messages. */
interface Handlers {
  CHANNEL_OPEN_CONFIRMATION: Handler<[info: { packetSize: number }]>;
  CHANNEL_DATA: DataHandler;
  CHANNEL_EXTENDED_DATA: DataHandler;
}

/** Internals of ssh2 1.17.0, pinned by package.json: its client's handlers, and its channels by number. */
interface Internals {
  _protocol: { _handlers: Handlers };
  _chanMgr: { get(id: number): { incoming?: { state: string; window: number } } | undefined };
}

/** Servers take 32 kB. ssh2 splits each write into packets of this size, without end if it is 0. */
const LEAST_PACKET_BYTES = 1_024;
const GLOBAL_REQUEST = 80;
const HOSTKEYS = 'hostkeys-00@openssh.com';

/**
 * Makes ssh2 enforce RFC 4254, where it trusts the host: data beyond a channel's window (5.2) fills the memory, data
 * after EOF (5.3) is an unhandled error, and tiny packets block the process. Data after EOF is dropped; other
 * violations end the connection.
 */
export function refuseViolations(client: ssh2.Client, transport: Transport): void {
  const { _protocol, _chanMgr: channels } = privateParts<Internals>('a client of ssh2', client, [
    '_protocol',
    '_chanMgr',
  ]);
  const handlers = privateParts<Handlers>('the protocol of ssh2', _protocol._handlers, [
    'CHANNEL_OPEN_CONFIRMATION',
    'CHANNEL_DATA',
    'CHANNEL_EXTENDED_DATA',
  ]);
  const end = (why: string): never => {
    transport.destroy();
    // ssh2 makes it the client's error.
    throw new Error(`the host violates RFC 4254: ${why}`);
  };
  const open = handlers.CHANNEL_OPEN_CONFIRMATION;
  handlers.CHANNEL_OPEN_CONFIRMATION = (protocol, info) => {
    if (info.packetSize < LEAST_PACKET_BYTES) end(`it takes packets of ${info.packetSize} bytes`);
    open(protocol, info);
  };
  const bounded =
    (handle: DataHandler): DataHandler =>
    (protocol, recipient, data, type) => {
      const incoming = channels.get(recipient)?.incoming;
      if (incoming && incoming.state !== 'open') return;
      if (incoming && data.length > incoming.window)
        end('it sends more than the window of a channel');
      handle(protocol, recipient, data, type);
    };
  handlers.CHANNEL_DATA = bounded(handlers.CHANNEL_DATA);
  handlers.CHANNEL_EXTENDED_DATA = bounded(handlers.CHANNEL_EXTENDED_DATA);
}

/**
 * Drops the host keys announced after the login, which nobody needs: ssh2 parses them with regular expressions that
 * take a second for a message of 35 kB.
 */
function dropHostKeys(): void {
  type Receive = (protocol: unknown, payload: Buffer) => void;
  const receivers = requirePackage<Receive[]>('ssh2/lib/protocol/handlers.js');
  const receive = receivers[GLOBAL_REQUEST];
  if (!receive)
    throw new Error('this ssh2 handles messages elsewhere: install the version in package.json');
  receivers[GLOBAL_REQUEST] = (protocol, payload) => {
    if (payload.toString('latin1', 5, 5 + HOSTKEYS.length) !== HOSTKEYS) receive(protocol, payload);
  };
}

dropHostKeys();
