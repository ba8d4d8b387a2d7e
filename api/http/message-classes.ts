import { IncomingMessage, type ServerOptions, ServerResponse } from 'node:http';
import type { Express } from 'express';

/**
 * Message classes for createServer() with Express's prototypes. By default Express changes the prototype of each
 * message, for which V8 creates hidden classes: 2 KB for each open answer, and far more garbage.
 */
export function createMessageClasses(
  app: Express,
): Pick<
  ServerOptions<typeof IncomingMessage, typeof ServerResponse>,
  'IncomingMessage' | 'ServerResponse'
> {
  class Request extends IncomingMessage {}
  class Response<T extends IncomingMessage> extends ServerResponse<T> {}
  app.request = Object.setPrototypeOf(Request.prototype, app.request);
  app.response = Object.setPrototypeOf(Response.prototype, app.response);
  return { IncomingMessage: Request, ServerResponse: Response };
}
