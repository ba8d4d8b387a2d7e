import postgres from 'postgres';
import { privateParts } from '../process/private-parts.ts';
import { ConnectionDelay } from './connection-delay.ts';
import { finderOf, type PrimaryFinder } from './primary.ts';
import { requireScram } from './require-scram.ts';
import { failSoon, openSocket, type SocketTarget } from './socket.ts';

type PoolOptions = postgres.Options<Record<string, never>> & {
  max: number;
  /** So many connections are usual; further ones are used under load. */
  usual: number;
  /** Told of each statement and transaction that fails. */
  onFailed: (error: unknown) => void;
};

interface Pool {
  sql: postgres.Sql;
  /** Opens new connections for what comes next. What runs is given some seconds to end. */
  renew: () => void;
}

/** A statement of the driver. */
type Statement = Promise<unknown> & {
  /** The function of a client that sends it. It is called when the statement is awaited. */
  handler: (statement: Statement) => void;
  /** Takes each row instead of the driver. */
  forEachFn?: (row: unknown, result: unknown[]) => void;
};

/** Throws where the driver has another way to send it: the template, which never connects, would. */
const toStatement = (made: Promise<unknown>) =>
  privateParts<Statement>('a statement of postgres.js', made, ['handler']);

/**
 * A pool of two clients, the second for load (decision 34). A client takes the connection that was free for longest, so
 * that even few statements keep all its connections open; those of the second close after `idle_timeout`.
 */
export function openPool(url: string, { max, usual, onFailed, ...options }: PoolOptions): Pool {
  /** Never connects. It makes statements, and drizzle sets parsers and serializers on its options, which the clients have. */
  const finder = finderOf(url);
  const template = postgres(finder.url, { ...options, ssl: false });
  const first = new ReplacedClient({ template, finder, max: Math.min(usual, max) });
  const second = max > usual ? new ReplacedClient({ template, finder, max: max - usual }) : first;
  const isFree = () => first === second || first.running < usual;
  const connectionDelay = new ConnectionDelay(isFree);
  const run = async <T>(work: (client: Client) => Promise<T>) => {
    try {
      return await connectionDelay.run(() =>
        (isFree() ? first : second).run(work).finally(() => connectionDelay.next()),
      );
    } catch (error) {
      onFailed(error);
      throw error;
    }
  };
  const hook = (made: unknown) => {
    // A statement is a promise. The names and lists of values in it, which are made here too, are not sent by themselves.
    if (!(made instanceof Promise)) return made;
    toStatement(made).handler = statement => {
      // The driver would put rows behind as many holes as rows came before the error of the connection's last statement: a
      // user who exists was not found (decision 7). Transactions need no such care: `begin` and `rollback` reset the count.
      statement.forEachFn = (row, result) => result.push(row);
      const sent = run(({ send }) => {
        send(statement);
        return statement;
      });
      // Whoever awaits the statement is told.
      sent.catch(() => {});
    };
    return made;
  };

  const sql = new Proxy(template, {
    apply: (_target, self, args) => hook(Reflect.apply(template as never, self, args)),
    get(_target, key) {
      switch (key) {
        case 'unsafe':
          return (...args: Unsafe) => hook(makePrepared(template, ...args));
        case 'begin':
          return (...given: unknown[]) => run(({ sql }) => begin(sql, given));
        case 'end':
          return (how: { timeout: number }) => Promise.all([first.end(how), second.end(how)]);
        default:
          return Reflect.get(template, key);
      }
    },
  });
  const renew = () => {
    first.renew();
    second.renew();
  };
  return { sql, renew };
}

interface Client {
  sql: postgres.Sql;
  /** Sends a statement that was made by this client. */
  send: Statement['handler'];
  /** How much of its work has not ended. Work that a broken connection interrupts may never end. */
  running: number;
  /** Replaces it; what runs is given so many seconds to end. */
  retire: (seconds: number) => void;
}

/**
 * A postgres.js client that is replaced once one of its connections breaks, with all pending queries rejected. A
 * connection of postgres.js 3.4.9 reconnects with stale state, so that a query could receive the result of another one
 * (decision 7).
 */
class ReplacedClient {
  readonly #options: { template: postgres.Sql; finder: PrimaryFinder; max: number };
  #client: Client;

  constructor(options: { template: postgres.Sql; finder: PrimaryFinder; max: number }) {
    this.#options = options;
    this.#client = this.#open();
  }

  get running(): number {
    return this.#client.running;
  }

  async run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = this.#client;
    client.running++;
    try {
      return await work(client);
    } finally {
      client.running--;
    }
  }

  renew(): void {
    this.#client.retire(2);
  }

  end(how: { timeout: number }): Promise<void> {
    return this.#client.sql.end(how);
  }

  #open(): Client {
    const { template, finder, max } = this.#options;
    let isRetired = false;
    const retire = (timeout: number) => {
      if (isRetired) return;
      isRetired = true;
      this.#client = this.#open();
      void sql.end({ timeout }).catch(() => {});
    };
    // A rejected promise would remove its connection from the driver's pool for ever.
    const socket = async (target: SocketTarget) => {
      const place = await finder.find().catch((error: Error) => error);
      if (place instanceof Error) return failSoon(place);
      const where = place ? { host: [place.host], port: [place.port] } : target;
      const opened = await openSocket(where, {
        tls: finder.tls,
        onBroken: () => retire(0),
        onError: () => finder.forget(),
      }).catch((error: Error) => {
        // A handshake that fails is no error of the socket: another server may be the primary.
        finder.forget();
        return failSoon(error);
      });
      if (isRetired) {
        opened.destroy();
        return failSoon(new Error('the database client was replaced'));
      }
      return finder.requiresScram ? requireScram(opened) : opened;
    };
    const sql: postgres.Sql = postgres({
      ...template.options,
      max,
      socket,
    } as unknown as PoolOptions);
    const { handler: send } = toStatement(sql.unsafe(''));
    return { sql, send, running: 0, retire };
  }
}

/** Statements with more parameters hold lists; each length would be another prepared statement. */
const MAX_PREPARED_PARAMETERS = 40;

type Unsafe = [text: string, parameters?: unknown[], options?: object];

/**
 * Makes a statement prepared. drizzle sends them unprepared, with a second round trip for the types of the parameters.
 * Prepared, a look-up by primary key takes 0.8 of the time, the median of nine pairs.
 */
function makePrepared(sql: postgres.Sql, ...[text, parameters = [], options = {}]: Unsafe) {
  const prepare = parameters.length > 0 && parameters.length <= MAX_PREPARED_PARAMETERS;
  return sql.unsafe(text, parameters as never[], { ...options, prepare });
}

/** Begins a transaction, or a savepoint in one, whose statements are prepared. */
function begin(sql: postgres.Sql, given: unknown[], key = 'begin'): Promise<unknown> {
  const work = given.pop() as (tx: postgres.Sql) => Promise<unknown>;
  const inside = (tx: postgres.Sql) =>
    work(
      new Proxy(tx, {
        get(_target, name) {
          switch (name) {
            case 'unsafe':
              return (...args: Unsafe) => makePrepared(tx, ...args);
            case 'savepoint':
              return (...inner: unknown[]) => begin(tx, inner, name);
            default:
              return Reflect.get(tx, name);
          }
        },
      }),
    );
  return Reflect.apply(Reflect.get(sql, key), sql, [...given, inside]);
}
