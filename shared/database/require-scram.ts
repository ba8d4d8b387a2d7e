import { Socket } from 'node:net';

/** Types of messages, and of authentication: PostgreSQL's protocol 3, "Message Formats". */
const [AUTHENTICATION, ERROR, NOTICE, NEGOTIATION] = [...Buffer.from('RENv')] as Bytes;
const [OK, SASL, SASL_CONTINUE, SASL_FINAL] = [0, 10, 11, 12];
const HEADER = 5;
type Bytes = [number, number, number, number];

/**
 * Ends a connection to a server that does not use SCRAM-SHA-256: whoever took the port during a restart would get the
 * password in clear, or be trusted. The drivers lack libpq's `require_auth`. Call it before a driver listens, and not
 * with TLS.
 */
export function requireScram(socket: Socket): Socket {
  let isProven = false;
  const look = (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; ) {
      const end = endOf(chunk, at);
      const isSound = end !== undefined && isExpected(chunk, at);
      if (!isSound) {
        hide(chunk, at);
        socket.destroy(new Error('the database server does not authenticate by SCRAM-SHA-256'));
        return;
      }
      if (chunk[at] === AUTHENTICATION) {
        const type = chunk.readUInt32BE(at + HEADER);
        if (type === OK) {
          socket.off('data', look);
          return;
        }
        isProven = type === SASL_FINAL;
      }
      at = end;
    }
  };
  const isExpected = (chunk: Buffer, at: number): boolean => {
    if (chunk[at] !== AUTHENTICATION) return [ERROR, NOTICE, NEGOTIATION].includes(chunk[at] ?? 0);
    const type = chunk.readUInt32BE(at + HEADER);
    return type === OK ? isProven : [SASL, SASL_CONTINUE, SASL_FINAL].includes(type);
  };
  return socket.on('data', look);
}

/** Where the message that begins there ends. Undefined where it is incomplete: a server sends so short ones whole. */
function endOf(chunk: Buffer, at: number): number | undefined {
  const least = chunk[at] === AUTHENTICATION ? HEADER + 4 : HEADER;
  if (at + least > chunk.length) return undefined;
  const end = at + 1 + chunk.readUInt32BE(at + 1);
  return end >= at + least && end <= chunk.length ? end : undefined;
}

/** The driver gets the same bytes, and would answer before it hears of the end: they are made the start of a notice. */
function hide(chunk: Buffer, at: number): void {
  chunk[at] = NOTICE;
  if (at + HEADER <= chunk.length) chunk.writeUInt32BE(0x7fff_ffff, at + 1);
}

/** For `stream` of `pg`. */
export const openScramSocket = () => requireScram(new Socket());
