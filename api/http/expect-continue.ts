import { IncomingMessage, type RequestListener, type Server } from 'node:http';

const waiting = new WeakSet<IncomingMessage>();

/** Whether the client keeps its body back until it is told to send it. */
export const awaitsContinue = (req: IncomingMessage): boolean => waiting.has(req);

/**
 * RFC 9110, 10.1.1: a client that expects 100 (Continue) is told to send its body when that is first read, so that what
 * is refused before costs it nothing. After such a refusal nobody knows whether the body comes: the connection ends.
 */
export function handleExpectContinue(server: Server, listener: RequestListener): void {
  server.on('checkContinue', (req, res) => {
    const keepAlive = res.shouldKeepAlive;
    res.shouldKeepAlive = false;
    waiting.add(req);
    req._read = function askForBody(size) {
      req._read = IncomingMessage.prototype._read;
      if (!res.headersSent) {
        waiting.delete(req);
        res.shouldKeepAlive = keepAlive;
        res.writeContinue();
      }
      req._read(size);
    };
    listener(req, res);
  });
  // What else a client may expect is passed over, as RFC 9110, 10.1.1 leaves a server free to do.
  server.on('checkExpectation', listener);
}
