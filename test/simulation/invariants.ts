import type { Sql } from 'postgres';
import type { Actor } from './actor.ts';
import type { Done } from './simulated-database.ts';
import type { HostRequest } from './simulated-host.ts';

/** A job's row, as far as the invariants need it; times are ms of the world by the server's clock. */
export interface Row {
  id: string;
  /** The name that its payload has. */
  name: string;
  kind: string;
  owner: string;
  state: string;
  epoch: number;
  token: string | null;
  worker: string | null;
  dispatched: boolean;
  finished: number | null;
  cancelled: boolean;
  promised: boolean;
  stored: number;
  kept: number;
  end: string;
}
type Rows = Map<string, Row>;

/** A property that must hold does not. */
export class Broken extends Error {}

/** Two looks at a lease are so far apart, and a renewal between them keeps it: see LOOKS in processes.ts. */
const PATIENCE_MS = 1_000;
const RETENTION_MS = 86_400_000;

export interface World {
  now: number;
  /** What the server's clock says, in ms of the world. */
  serverNow: number;
  tell(line: string): void;
}

/** Looks at the rows after each write, and at each request to the host; throws Broken. */
export class Invariants {
  readonly #sql: Sql;
  readonly #world: World;
  rows: Rows = new Map();
  /** The name of each job that there was, by its id. */
  readonly names = new Map<string, string>();
  /** The transaction that wrote the lease of each worker last, and when. A claim that finds nothing renews none. */
  readonly #renewed = new Map<string, { by: string; at: number }>();
  /** The count of writes when each token ceased to be valid. */
  readonly #revoked = new Map<string, number>();
  /** The count of writes when the answer was written that the actor of each token heard last, and that depends on it. */
  readonly #told = new Map<string, number>();
  /** The last tokens of workers, by `worker job`. */
  readonly #tokens = new Map<string, string>();
  #count = 0;

  constructor(sql: Sql, world: World) {
    this.#sql = sql;
    this.#world = world;
  }

  async onWrite(done: Done): Promise<void> {
    const before = this.rows;
    this.#count++;
    this.rows = await this.#read();
    if (done.texts.some(text => /insert into "leases"/.test(text))) await this.#noteRenewals();
    for (const id of new Set([...before.keys(), ...this.rows.keys()]))
      this.#compare(done, before.get(id), this.rows.get(id));
  }

  /** What an actor heard depends on a token as it was when the statement was done. */
  onHeard({ parameters }: Done, at: number): void {
    const text = parameters.map(String).join(' ');
    for (const [token] of this.#revoked)
      if (text.includes(token)) this.#told.set(token, Math.max(at, this.#told.get(token) ?? 0));
  }

  get count(): number {
    return this.#count;
  }

  onSend({ actor, job }: HostRequest): void {
    const token = this.#tokens.get(`${actor.name} ${job}`);
    const revoked = this.#revoked.get(token ?? '');
    const told = this.#told.get(token ?? '');
    if (revoked !== undefined && told !== undefined && told >= revoked)
      this.#break(actor, job, 'asks the host although it was told that its lease is revoked');
  }

  onStart(job: string): void {
    const row = this.rows.get(job);
    if (row && !row.promised) throw new Broken(`${job} starts before its row says so (run_at)`);
  }

  #compare(done: Done, a: Row | undefined, b: Row | undefined): void {
    const { actor } = done;
    if (!b) {
      if (a && (a.finished === null || this.#world.serverNow - a.finished < RETENTION_MS))
        this.#break(actor, a.id, 'removes a job that is open or has just ended');
      return;
    }
    if (!a) {
      this.names.set(b.id, b.name);
      this.#world.tell(`  ${b.id} is ${describe(b)}`);
      return;
    }
    if (JSON.stringify(a) === JSON.stringify(b)) return;
    if (describe(a) !== describe(b)) this.#world.tell(`  ${b.id} is ${describe(b)}`);
    const broken = (why: string) => this.#break(actor, b.id, why);
    if (a.finished !== null && a.end !== b.end) broken('changes what has ended');
    if (b.stored < a.stored) broken('takes stored output back');
    if (b.stored !== b.kept)
      broken(`says that ${b.stored} bytes are stored, but they are ${b.kept}`);
    if (
      a.epoch !== b.epoch &&
      (b.epoch !== a.epoch + 1 || a.dispatched || a.token || a.finished !== null)
    )
      broken('dispatches what does not wait');
    if (a.cancelled && b.state === 'succeeded' && b.kind === 'parse')
      broken('promotes what was cancelled before');
    if (a.token && a.token !== b.token) this.#revoked.set(a.token, this.#count);
    const role = roleOf(actor);
    if (a.token && role === 'W' && !names(done, a.token)) broken("writes under another's lease");
    if (a.token && role === 'D') this.#checkReclaim(actor, a, b);
    if (a.token && role === 'C' && (a.token !== b.token || b.finished !== null))
      broken('ends a job that a worker has');
    if (!a.token && b.token) this.#checkClaim(done, a, b);
    if (!a.token && !b.token && role === 'W' && (a.end !== b.end || a.promised !== b.promised))
      broken('writes without a lease');
  }

  #checkReclaim(actor: Actor, a: Row, b: Row): void {
    if (b.token) this.#break(actor, a.id, 'changes a job that a worker has');
    const since =
      this.#world.now - (this.#renewed.get(a.worker ?? '')?.at ?? Number.NEGATIVE_INFINITY);
    if (since < PATIENCE_MS)
      this.#break(actor, a.id, `takes the lease of ${a.worker}, renewed ${since} ms ago`);
  }

  #checkClaim(done: Done, a: Row, b: Row): void {
    const { actor } = done;
    if (a.finished !== null) this.#break(actor, a.id, 'claims what has ended');
    if (b.worker !== actor.name) this.#break(actor, a.id, 'claims for another');
    const entry = `"id":"${a.id}","epoch":${a.epoch},`;
    if (!done.parameters.some(one => String(one).includes(entry)))
      this.#break(actor, a.id, `claims with an entry that is not of epoch ${a.epoch}`);
    this.#tokens.set(`${actor.name} ${a.id}`, b.token ?? '');
  }

  #break(actor: Actor, job: string, what: string): never {
    throw new Broken(`${actor.name} ${what}: ${job}`);
  }

  async #noteRenewals(): Promise<void> {
    const leases = await this.#sql<{ worker: string; by: string }[]>`
      select worker, xmin::text as by from leases`;
    for (const { worker, by } of leases)
      if (this.#renewed.get(worker)?.by !== by)
        this.#renewed.set(worker, { by, at: this.#world.now });
  }

  async #read(): Promise<Rows> {
    const rows = await this.#sql<Row[]>`
      select id, coalesce(payload ->> 'command', payload ->> 'upload') as name, kind, owner, state, epoch, lease_token as token, worker,
        dispatched is not null as dispatched, (extract(epoch from finished - '2030-01-01Z') * 1000)::float8 as finished,
        cancel_requested is not null as cancelled, run_at is not null as promised, stdout_bytes::float8 as stored,
        (select coalesce(sum(octet_length(bytes)), 0)::float8 from job_chunks where job = id) as kept,
        concat_ws(' ', state, finished, result, error, stdout_bytes, lease_token) as end
      from jobs order by id`;
    return new Map(rows.map(row => [row.id, row]));
  }
}

export const roleOf = ({ name }: Actor) => name.charAt(0);

const names = ({ parameters }: Done, token: string) =>
  parameters.some(parameter => String(parameter).includes(token));

function describe({
  state,
  epoch,
  token,
  worker,
  dispatched,
  stored,
  cancelled,
  promised,
}: Row): string {
  const parts = [`${state}, epoch ${epoch}`];
  if (token) parts.push(`leased by ${worker}`);
  else if (dispatched) parts.push('dispatched');
  if (promised) parts.push('promised');
  if (stored > 0) parts.push(`${stored} bytes stored`);
  if (cancelled) parts.push('cancel requested');
  return parts.join(', ');
}
