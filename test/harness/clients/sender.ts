import type { Client } from '../../../servers/api-client.ts';

/** Sends as this client what may be refused, a body as JSON. */
export const senderOf =
  (client: Client) =>
  (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    client.fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
