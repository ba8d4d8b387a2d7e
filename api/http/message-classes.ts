import { IncomingMessage, type ServerOptions, ServerResponse } from 'node:http';
import type { Express } from 'express';

/**
 * Classes for createServer() whose objects are the app's requests and answers from the start. Otherwise Express changes
 * the prototype of each of Node's, after which V8 makes a new shape for every property that is added: 2 KB that stay with
 * an answer that is open, and far more to collect.
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
