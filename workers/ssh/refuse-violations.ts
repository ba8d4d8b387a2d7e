import type ssh2 from 'ssh2';
import { privateParts } from '../../shared/process/private-parts.ts';
import { requirePackage } from '../../shared/process/require-package.ts';
import type { Transport } from './limit-login.ts';

type Handler<A extends unknown[]> = (protocol: unknown, ...message: A) => void;
type DataHandler = Handler<[recipient: number, data: Buffer, type?: number]>;
type RequestHandler = Handler<unknown[]>;

/** Handlers of RFC 4254 messages. */
interface Handlers {
  CHANNEL_OPEN_CONFIRMATION: Handler<[info: { packetSize: number }]>;
  CHANNEL_DATA: DataHandler;
  CHANNEL_EXTENDED_DATA: DataHandler;
  GLOBAL_REQUEST: RequestHandler;
  CHANNEL_OPEN: RequestHandler;
  CHANNEL_REQUEST: RequestHandler;
}

/** A stream of a channel, and the pieces that nobody has read yet; SFTP has none. */
interface Unread {
  _readableState?: { buffer: { length: number } };
}

/** Internals of ssh2 1.17.0, pinned by package.json: its client's handlers, and its channels by number. */
interface Internals {
  _protocol: { _handlers: Handlers };
  _chanMgr: { get(id: number): Channel | undefined };
}

interface Channel extends Unread {
  incoming?: { state: string; window: number };
  stderr?: Unread;
}

/** Servers accept 32 kB. ssh2 splits each write into packets of the size that the host names, without end if that is 0. */
const LEAST_PACKET_BYTES = 1_024;
/**
 * For each stream. A piece takes some 200 bytes of memory, even where a window has millions of them. A command that prints
 * 2,000 times a second may go on for a minute while its output cannot be stored.
 */
const MAX_UNREAD_PIECES = 131_072;
/** A reply takes some 300 bytes of memory until it is sent. */
const MAX_UNREAD_REPLIES = 16_384;
const GLOBAL_REQUEST = 80;
const HOSTKEYS = 'hostkeys-00@openssh.com';

/**
 * Makes ssh2 enforce RFC 4254, where it trusts the host: data beyond a channel's window (5.2), or in tiny pieces, and
 * replies to a host that does not read fill the memory; data after EOF (5.3) is an unhandled error; tiny packets block the
 * process. Data after EOF is dropped; all else ends the connection.
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
    'GLOBAL_REQUEST',
    'CHANNEL_OPEN',
    'CHANNEL_REQUEST',
  ]);
  const end = (why: string): never => {
    transport.destroy();
    // ssh2 emits it as an error of the client.
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
      const channel = channels.get(recipient);
      const incoming = channel?.incoming;
      if (incoming && incoming.state !== 'open') return;
      if (incoming && data.length > incoming.window)
        end('it sends more than the window of a channel');
      const stream = type === undefined ? channel : channel?.stderr;
      if ((stream?._readableState?.buffer.length ?? 0) > MAX_UNREAD_PIECES)
        end('it sends too many small pieces');
      handle(protocol, recipient, data, type);
    };
  handlers.CHANNEL_DATA = bounded(handlers.CHANNEL_DATA);
  handlers.CHANNEL_EXTENDED_DATA = bounded(handlers.CHANNEL_EXTENDED_DATA);
  // Counts replies, not bytes: a large write of our own to a slow host may wait as well.
  let unread = 0;
  const answered =
    (handle: RequestHandler): RequestHandler =>
    (protocol, ...message) => {
      unread = transport.writableLength === 0 ? 0 : unread + 1;
      if (unread > MAX_UNREAD_REPLIES) end('it does not read the replies that it asks for');
      handle(protocol, ...message);
    };
  handlers.GLOBAL_REQUEST = answered(handlers.GLOBAL_REQUEST);
  handlers.CHANNEL_OPEN = answered(handlers.CHANNEL_OPEN);
  handlers.CHANNEL_REQUEST = answered(handlers.CHANNEL_REQUEST);
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
