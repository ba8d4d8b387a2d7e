import { IncomingMessage, type RequestListener, type Server } from 'node:http';

const waiting = new WeakSet<IncomingMessage>();

/** Whether the client still waits for 100 (Continue) before it sends the body. */
export const awaitsContinue = (req: IncomingMessage): boolean => waiting.has(req);

/**
 * RFC 9110, 10.1.1: sends 100 (Continue) when the body is first read, so that a client uploads nothing for a request that
 * is refused earlier. After such a refusal the body may follow or not: the connection ends.
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
  // Other expectations are ignored, as RFC 9110, 10.1.1 allows.
  server.on('checkExpectation', listener);
}
