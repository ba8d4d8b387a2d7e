import postgres from 'postgres';
import { openSocket } from './socket.ts';

type Options = postgres.Options<Record<string, never>>;
type Client = postgres.Sql;
/** A statement that is not sent yet, with the function of its client that sends it. */
type Statement = PromiseLike<unknown> & { handler: (statement: Statement) => void };
type Work = (slot: Slot) => PromiseLike<unknown>;

interface Slot {
  client: Client;
  send: Statement['handler'];
  isBusy: boolean;
}

/**
 * A pool of postgres.js clients with one connection each. Work goes to the first that is free, so that the others close
 * after `idle_timeout`: the driver's own pool takes the one that was free for longest, and so keeps all of them open.
 *
 * A client is replaced by a new one once its connection breaks. A connection object of postgres.js 3.4.9 reconnects with
 * stale state: pending queries, rows of an interrupted result, a partly read error. The next query could then receive the
 * result of another one.
 */
export function openPool(url: string, { max = 10, ...options }: Options): Client {
  /** Never connects. It makes statements, and drizzle sets parsers and serializers on it. */
  const template = postgres(url, { ...options, max: 1 });
  const slots: Slot[] = [];
  const waiting: Work[] = [];

  function openClient(onBroken: () => void): Pick<Slot, 'client' | 'send'> {
    let isBroken = false;
    const client: Client = postgres(url, {
      ...options,
      max: 1,
      socket: (target: Parameters<typeof openSocket>[0]) => {
        const socket = openSocket(target, () => {
          if (isBroken) return;
          isBroken = true;
          onBroken();
          void client.end({ timeout: 0 }).catch(() => {});
        });
        if (isBroken) socket.destroy(new Error('the database client was replaced'));
        return socket;
      },
    } as Options);
    Object.assign(client.options.parsers, template.options.parsers);
    Object.assign(client.options.serializers, template.options.serializers);
    const { handler: send } = client.unsafe('') as unknown as Statement;
    return { client, send };
  }

  function addSlot(): Slot {
    const replace = () => Object.assign(slot, openClient(replace));
    const slot: Slot = { ...openClient(replace), isBusy: false };
    slots.push(slot);
    return slot;
  }

  function run(work: Work): void {
    const slot =
      slots.find(({ isBusy }) => !isBusy) ?? (slots.length < max ? addSlot() : undefined);
    if (!slot) {
      waiting.push(work);
      return;
    }
    slot.isBusy = true;
    const free = () => {
      slot.isBusy = false;
      const next = waiting.shift();
      if (next) run(next);
    };
    work(slot).then(free, free);
  }

  /** Statements are sent when they are awaited; parts of others never are. */
  function hook<T>(made: T): T {
    if (isStatement(made)) {
      made.handler = statement =>
        run(({ send }) => {
          send(statement);
          return statement;
        });
    }
    return made;
  }

  return new Proxy(template, {
    apply: (_target, self, args) => hook(Reflect.apply(template as never, self, args)),
    get(_target, key) {
      switch (key) {
        case 'unsafe':
          return (...args: unknown[]) => hook(call(template, 'unsafe', args));
        case 'begin':
          return (...args: unknown[]) =>
            new Promise((resolve, reject) => {
              run(({ client }) => call(client, 'begin', [...args]).then(resolve, reject));
            });
        case 'end':
          return (how: { timeout?: number }) =>
            Promise.all(slots.map(({ client }) => client.end(how)));
        default:
          return Reflect.get(template, key);
      }
    },
  });
}

const isStatement = (made: unknown): made is Statement =>
  typeof made === 'object' && made !== null && 'handler' in made;

const call = (client: Client, key: 'unsafe' | 'begin', args: unknown[]) =>
  (getPrepared(client, key) as (...args: unknown[]) => Promise<unknown>)(...args);

/** Statements with more parameters hold lists; each length would be another prepared statement. */
const MAX_PREPARED_PARAMETERS = 40;

/**
 * Makes statements prepared. drizzle sends them unprepared, with a second round trip for the types of the parameters.
 * Prepared, a look-up by primary key takes 0.8 of the time, the median of nine pairs.
 */
function getPrepared(client: Client, key: PropertyKey): unknown {
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
