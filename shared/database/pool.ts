import postgres from 'postgres';
import { openSocket } from './socket.ts';

type Options = postgres.Options<Record<string, never>>;

/**
 * A postgres.js client that is replaced by a new one once a connection of it breaks. A connection object of postgres.js
 * 3.4.9 reconnects with stale state: pending queries, rows of an interrupted result, a partly read error. The next query
 * could then receive the result of another one. So a break rejects all pending queries, and further ones use a new client.
 */
export function openPool(url: string, options: Options): postgres.Sql {
  let current = begin();

  function begin(): postgres.Sql {
    let retired = false;
    const client: postgres.Sql = postgres(url, {
      ...options,
      socket: (target: Parameters<typeof openSocket>[0]) => {
        const socket = openSocket(target, () => {
          if (retired) return;
          retired = true;
          const next = begin();
          // drizzle has set parsers and serializers on the first client only.
          Object.assign(next.options.parsers, client.options.parsers);
          Object.assign(next.options.serializers, client.options.serializers);
          current = next;
          void client.end({ timeout: 0 }).catch(() => {});
        });
        if (retired) socket.destroy(new Error('the database client was replaced'));
        return socket;
      },
    } as Options);
    return client;
  }

  return new Proxy(current, {
    apply: (_target, self, args) => Reflect.apply(current as never, self, args),
    get: (_target, key) => getPrepared(current, key),
  });
}

/** Statements with more parameters hold lists; each length would be another prepared statement. */
const MAX_PREPARED_PARAMETERS = 40;

/**
 * Makes statements prepared. drizzle sends them unprepared, with a second round trip for the types of the parameters.
 * Prepared, a look-up by primary key takes 0.8 of the time, the median of nine pairs.
 */
function getPrepared(client: postgres.Sql, key: PropertyKey): unknown {
  const value: unknown = Reflect.get(client, key);
  switch (key) {
    case 'unsafe':
      return (text: string, parameters: unknown[] = [], options: object = {}) => {
        const prepare = parameters.length > 0 && parameters.length <= MAX_PREPARED_PARAMETERS;
        return client.unsafe(text, parameters as never[], { ...options, prepare });
      };
    case 'begin':
    case 'savepoint':
      return (...given: unknown[]) => {
        const work = given.pop() as (tx: postgres.Sql) => Promise<unknown>;
        const prepared = (tx: postgres.Sql) =>
          work(new Proxy(tx, { get: (_target, name) => getPrepared(tx, name) }));
        return Reflect.apply(value as never, client, [...given, prepared]);
      };
    default:
      return value;
  }
}
