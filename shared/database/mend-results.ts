import type postgres from 'postgres';

/**
 * postgres.js 3.4.9 counts the rows of an answer in a variable of the connection and does not set it back when the
 * connection breaks in the middle of one: the next answer over it then begins with as many holes, and its first row is
 * taken for missing. This gives a client, and its transactions, whose answers have no holes.
 */
export function mendResults<T extends postgres.ISql>(client: T): T {
  return new Proxy(client, {
    apply: (target, self, args) => mendQuery(Reflect.apply(target as never, self, args)),
    get: (target, key, receiver) => {
      const value: unknown = Reflect.get(target, key, receiver);
      if (typeof value !== 'function') return value;
      if (key === 'unsafe') return (...args: unknown[]) => mendQuery(value.apply(target, args));
      if (key !== 'begin' && key !== 'savepoint') return value;
      return (...args: unknown[]) => {
        const work = args.pop() as (transaction: postgres.ISql) => unknown;
        return value.call(target, ...args, (transaction: postgres.ISql) =>
          work(mendResults(transaction)),
        );
      };
    },
  });
}

/** A query is a promise that is sent when it is first asked for its result. */
function mendQuery<Q>(query: Q): Q {
  if (!(query instanceof Promise)) return query;
  const ask = query.then.bind(query) as Promise<unknown>['then'];
  // biome-ignore lint/suspicious/noThenProperty: it is a promise already, and this is where its result passes
  query.then = ((onResult, onError) =>
    ask(result => {
      if (Array.isArray(result)) while (result.length > 0 && !(0 in result)) result.shift();
      return onResult ? onResult(result) : result;
    }, onError)) as typeof query.then;
  return query;
}
