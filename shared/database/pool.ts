import postgres from 'postgres';
import { openSocket } from './socket.ts';

type Options = postgres.Options<Record<string, never>>;

/**
 * A postgres.js client whose connections are never used again once one of them broke. A connection object of postgres.js
 * 3.4.9 connects again with the state of the broken one: queries that were on their way, rows of an answer that broke
 * off, an error that was not read to its end; the next query may then get another one's answer. So a break retires all
 * of them: what was under way is rejected, and the next query is sent by a new client.
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
          // How values are read was settled by drizzle when it was given the first client.
          Object.assign(next.options.parsers, client.options.parsers);
          Object.assign(next.options.serializers, client.options.serializers);
          current = next;
          void client.end({ timeout: 0 }).catch(() => {});
        });
        if (retired) socket.destroy(new Error('the database connection was given up'));
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

/** Statements with more parameters are lists of all lengths, each of which would be prepared and kept. */
const MAX_PREPARED_PARAMETERS = 40;

/**
 * drizzle sends its statements unprepared: two round trips each, one to learn the types of the parameters. Prepared they
 * are one: 0.8 of the time for a look-up by primary key, the median of nine pairs.
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
