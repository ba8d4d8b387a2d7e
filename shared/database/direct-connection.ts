import type pg from 'pg';
import { clientOf, finderOf } from './primary.ts';
import { CONNECT_TIMEOUT_MS, socketErrors } from './socket.ts';

/** How often a connection is pinged, and how long it may take to answer before it is ended. */
const PING_MS = 5_000;
const RECONNECT_MS = 250;

type Listener = (payload: string) => void;

/**
 * The one connection of a process for LISTEN and advisory locks, which last as long as their connection. It opens at
 * its first use. It reconnects by itself where something listens, otherwise with the next statement.
 */
export class DirectConnection {
  readonly #url: string;
  readonly #options: pg.ClientConfig;
  readonly #idleSessionMs: number;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #onReconnect = new Set<() => void>();
  /** What the present connection listens to. */
  #channels = new Set<string>();
  #client: Promise<pg.Client> | undefined;
  /** The client that #client resolves, or will resolve, to. */
  #present: pg.Client | undefined;
  /** The error that broke a client: for statements that waited behind it the driver only says that the client was closed. */
  readonly #faults = new WeakMap<pg.Client, unknown>();
  #sent: Promise<unknown> = Promise.resolve();
  #wasOpen = false;
  #isClosed = false;
  #reconnect: NodeJS.Timeout | undefined;
  #ping: NodeJS.Timeout | undefined;

  /** After `idleSessionMs` without a statement the server ends the connection; 0: never. */
  constructor(url: string, { idleSessionMs = 0 }: { idleSessionMs?: number } = {}) {
    this.#url = url;
    this.#options = {
      connectionString: finderOf(url).url,
      application_name: process.title,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: PING_MS,
      keepAlive: true,
    };
    this.#idleSessionMs = idleSessionMs;
  }

  /** The rows of a statement. A lock that it takes is lost with the connection: ask for it again each time. */
  async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    const client = await this.#open();
    return this.#send<Row>(client, text, values);
  }

  /** Like query(), over a connection of its own. */
  async queryAnew<Row>(text: string): Promise<Row[]> {
    const other = new DirectConnection(this.#url);
    try {
      return await other.query<Row>(text);
    } finally {
      await other.close();
    }
  }

  /** Ends the connection: what comes next is sent over a new one. */
  renew(): void {
    if (this.#present) this.#drop(this.#present);
  }

  /** Whether the connection is to the server itself: a pooler reports another backend process than the server does. */
  async isOwn(): Promise<boolean> {
    const client = await this.#open();
    return (await this.#readPid()) === (client as pg.Client & { processID?: number }).processID;
  }

  /** Whether another connection gets the same backend meanwhile, as behind a pooler in transaction mode. */
  async isShared(): Promise<boolean> {
    const other = new DirectConnection(this.#url);
    try {
      const before = await this.#readPid();
      await other.query('begin');
      return (await other.#readPid()) === before || (await this.#readPid()) !== before;
    } finally {
      await other.close();
    }
  }

  /** Resolves once it listens. After a break it listens again, and then calls what onReconnect() was given. */
  async listen(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    await this.#listenAll(await this.#open());
  }

  /** The channel is left some seconds after its last listener: a new listener soon after costs nothing. */
  unlisten(channel: string, listener: Listener): void {
    this.#listeners.get(channel)?.delete(listener);
  }

  onReconnect(listener: () => void): void {
    this.#onReconnect.add(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#ping);
    clearTimeout(this.#reconnect);
    const client = await this.#client?.catch(() => undefined);
    await client?.end().catch(() => {});
  }

  #open(): Promise<pg.Client> {
    if (this.#isClosed) return Promise.reject(new Error('the database connection is closed'));
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #readPid(): Promise<number | undefined> {
    return (await this.query<{ pid: number }>('select pg_backend_pid() as pid'))[0]?.pid;
  }

  async #connect(): Promise<pg.Client> {
    const client = new (clientOf(this.#url))(this.#options);
    this.#present = client;
    this.#channels = new Set();
    client.on('error', error => this.#drop(client, error));
    client.on('end', () => this.#drop(client));
    client.on('notification', ({ channel, payload = '' }) => {
      for (const listener of this.#listeners.get(channel) ?? []) listener(payload);
    });
    try {
      await client.connect();
      await client.query(`set idle_session_timeout = ${this.#idleSessionMs}`);
      await this.#listenAll(client);
    } catch (error) {
      this.#drop(client, error);
      throw this.#faults.get(client) ?? error;
    }
    this.#ping ??= setInterval(() => void this.#keepAlive(), PING_MS).unref();
    if (this.#wasOpen) for (const listener of this.#onReconnect) listener();
    this.#wasOpen = true;
    return client;
  }

  /** Sends one statement after another, as the driver requires. */
  #send<Row>(client: pg.Client, text: string, values: unknown[] = []): Promise<Row[]> {
    const sent = this.#sent.then(() => this.#sendNow<Row>(client, text, values));
    this.#sent = sent.catch(() => {});
    return sent;
  }

  async #sendNow<Row>(client: pg.Client, text: string, values: unknown[]): Promise<Row[]> {
    try {
      const { rows } = await client.query<Row & pg.QueryResultRow>(text, values);
      return rows;
    } catch (error) {
      if (isAnswer(error)) throw error;
      // It is unknown what the server did: the connection cannot be used any more.
      this.#drop(client, error);
      throw this.#faults.get(client) ?? error;
    }
  }

  async #listenAll(client: pg.Client): Promise<void> {
    const missing = [...this.#listeners.keys()].filter(channel => !this.#channels.has(channel));
    for (const channel of missing) this.#channels.add(channel);
    await Promise.all(missing.map(channel => this.#send(client, `listen "${channel}"`)));
  }

  async #keepAlive(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    if (!client) return;
    const left = [...this.#listeners].filter(([, listeners]) => listeners.size === 0);
    for (const [channel] of left) {
      this.#listeners.delete(channel);
      this.#channels.delete(channel);
    }
    const statements = left.map(([channel]) => `unlisten "${channel}"`);
    await this.#send(client, statements.join(';') || 'select 1').catch(() => {});
  }

  /** Ends a connection that broke. */
  #drop(client: pg.Client, fault?: unknown): void {
    if (!isAnswer(fault)) countAsOutage(fault);
    if (this.#present !== client) return;
    this.#faults.set(client, fault);
    client.end().catch(() => {});
    this.#present = undefined;
    this.#client = undefined;
    if (this.#isClosed || this.#listeners.size === 0) return;
    clearTimeout(this.#reconnect);
    this.#reconnect = setTimeout(() => this.#open().catch(() => {}), RECONNECT_MS).unref();
  }
}

/** Whether it is the server that says so. */
const isAnswer = (error: unknown) => error instanceof Error && 'severity' in error;

/** To isDatabaseDown(): neither a refused connection nor `Query read timeout` tells what it is about. */
function countAsOutage(error: unknown): void {
  if (error instanceof Error) socketErrors.add(error);
}
