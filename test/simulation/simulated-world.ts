import { Actor, type Call, execute, hear, settle } from './actor.ts';
import { Broken, Invariants, roleOf } from './invariants.ts';
import {
  cancel,
  type JobToStart,
  removeOld,
  start,
  startDispatcher,
  startWorker,
} from './processes.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import { OUTPUT, SimulatedHost } from './simulated-host.ts';
import { SimulatedQueue } from './simulated-queue.ts';

type RunEntry = ReturnType<typeof startWorker>;
type Runnable = { call: Call } | { actor: Actor; timer: Actor['timers'][number] };
export type Loss = 'answer' | 'request' | 'late';

const DAY_MS = 86_400_000;
/** What a job may take to end once nothing fails any more. */
const FAIR_MS = 240_000;
const OWNERS = ['ann', 'bob'];

/** Some processes, a queue, a host and a database, and all that a schedule can make happen to them. */
export class SimulatedWorld {
  now = 0;
  /** How far the server's clock was set off. */
  offset = 0;
  readonly #story: string[] = [];
  readonly #database: SimulatedDatabase;
  readonly #queue = new SimulatedQueue();
  readonly #host = new SimulatedHost();
  readonly #checks: Invariants;
  #actors: Actor[] = [];
  readonly #workers = new Map<Actor, RunEntry>();
  /** Calls of processes that crashed, or gave up: they may still happen. */
  #late: Call[] = [];
  /** Workers whose start failed: their processes end. */
  #failed: Actor[] = [];
  #broken: unknown;
  #born = 0;
  #drawn = 1;

  constructor(database: SimulatedDatabase) {
    this.#database = database;
    this.#checks = new Invariants(database.real, this);
    const keep = (work: () => void) => {
      try {
        work();
      } catch (error) {
        this.#broken ??= error;
      }
    };
    const executedAt = new WeakMap<object, number>();
    database.onWrite = async done => {
      await this.#checks.onWrite(done).catch(error => {
        this.#broken ??= error;
      });
    };
    database.onDone = done => executedAt.set(done, this.#checks.count);
    database.onHeard = done => this.#checks.onHeard(done, executedAt.get(done) ?? 0);
    this.#host.idOf = name => this.#idOf(name);
    this.#host.onSend = request => keep(() => this.#checks.onSend(request));
    this.#host.onStart = job => keep(() => this.#checks.onStart(job));
  }

  /** The same numbers in every world. */
  random(): number {
    this.#drawn = (this.#drawn * 48_271) % 2_147_483_647;
    return this.#drawn / 2_147_483_647;
  }

  get serverNow(): number {
    return this.now + this.offset;
  }

  /** A line for each step. */
  get story(): string {
    return this.#story.join('\n');
  }

  /** Replaces the ids of jobs by their names, those of removed ones too. */
  named(text: string): string {
    let named = text;
    for (const [id, name] of this.#checks.names) named = named.replaceAll(id, name);
    return named;
  }

  tell(line: string): void {
    this.#story.push(this.#line(line));
  }

  #line = (text: string) => `${(this.now / 1_000).toFixed(1).padStart(7)} s  ${text}`;

  async begin(): Promise<void> {
    this.#database.setTime(0, 0);
    const sessions = OWNERS.flatMap(owner => [`${owner} agent`, `${owner} plain`])
      .map(sid => `('${sid}', '${sid.split(' ')[0]}', 'host', 'user', true, now(), now())`)
      .join(',');
    await this.#database.real.unsafe(`
      delete from jobs; delete from leases; delete from workers; delete from job_chunks; delete from sessions;
      delete from leftover_runs; delete from pending_deletions; delete from sim.locks; delete from sim.promoted;
      insert into sessions (sid, owner, hostname, username, agent, accessed, opened) values ${sessions}`);
    if (this.#database.worlds++ % 20 === 0) await this.#database.real.unsafe('vacuum analyze');
    for (const name of ['W1', 'W2']) await this.#startWorker(name);
    for (const name of ['D1', 'D2']) await this.#startDispatcher(name);
    // The first rounds of the dispatchers.
    for (const ms of [0, 6_500]) {
      this.now += ms;
      while (await this.step(0));
    }
    this.#story.length = 0;
  }

  /** Throws Broken when an invariant does not hold. */
  check(): void {
    if (this.#broken) throw this.#broken;
  }

  async start(job: JobToStart): Promise<void> {
    this.now += 1;
    await this.#act(`asks for ${job.name} (${job.kind}) of ${job.owner}`, actor =>
      start(actor, this.#around, job),
    );
  }

  async cancel(which: number): Promise<void> {
    const ids = [...this.#checks.rows.keys()];
    const id = ids[which % ids.length];
    if (id) await this.#act(`cancels ${id}`, actor => cancel(actor, this.#around, id));
  }

  async removeOld(): Promise<void> {
    await this.#act('removes old jobs', actor => removeOld(actor, this.#around), 'R');
  }

  advance(ms: number): void {
    this.now += ms;
  }

  setClock(ms: number): void {
    this.offset = this.offset === 0 ? ms : 0;
    this.tell(`the server's clock is set to ${this.offset / 1_000} s off`);
  }

  /** Lets one thing happen. With `unheard` the process is paused before it hears the answer. */
  async step(which: number, unheard = false): Promise<boolean> {
    const all = this.#runnable();
    const one = all[which % all.length];
    if (!one) return false;
    for (const actor of this.#failed.splice(0)) await this.#restart(actor, 'could not start');
    if ('timer' in one) await this.#fire(one);
    else if (one.call.outcome) await this.#hear(one.call);
    else {
      await this.#execute(one.call);
      if (!unheard) await this.#hear(one.call);
    }
    return true;
  }

  /** Lets all go well for `steps` steps. */
  async goOn(steps: number): Promise<void> {
    for (let i = 0; i < steps && !this.#broken; i++) {
      if (await this.step(Math.floor(this.random() * 1_000))) continue;
      if (await this.take(0, i, false)) continue;
      this.now = Math.max(this.now, this.#nextTimer());
    }
  }

  async lose(which: number, how: Loss): Promise<void> {
    const calls = this.#runnable().flatMap(one => ('call' in one ? [one.call] : []));
    const call = calls[which % calls.length];
    if (!call?.actor.isAlive) return;
    this.tell(
      `${call.actor.name}: the ${how === 'answer' ? 'answer' : 'request'} is ${how === 'late' ? 'late' : 'lost'} (${call.label() || 'it asks'})`,
    );
    if (how === 'answer' && !call.outcome) await this.#execute(call);
    if (how === 'late' && !call.outcome) this.#late.push(call);
    await hear(call, { error: call.lost() });
  }

  /** A process is killed, and another one is started in its place. */
  async crash(which: number): Promise<void> {
    const all = this.#actors.filter(({ name }) => /^[WD]/.test(name));
    const actor = all[which % all.length];
    if (actor) await this.#restart(actor, 'is killed');
  }

  async #restart(actor: Actor, why: string): Promise<void> {
    this.tell(`${actor.name} ${why}`);
    this.#late.push(...actor.crash());
    this.#actors = this.#actors.filter(other => other !== actor);
    this.#queue.returnOf(actor);
    this.#workers.delete(actor);
    const name = `${actor.name.slice(0, 2)}.${++this.#born}`;
    if (roleOf(actor) === 'W') await this.#startWorker(name);
    else {
      await this.#database.real`delete from sim.locks where holder = ${actor.name}`;
      await this.#startDispatcher(name);
    }
  }

  /** Gives an entry to a worker; `again` repeats it. */
  async take(which: number, worker: number, again: boolean): Promise<boolean> {
    const { waiting } = this.#queue;
    const workers = [...this.#workers];
    const [actor, run] = workers[worker % workers.length] ?? [];
    if (!actor || !run || waiting.length === 0) return false;
    const entry = this.#queue.take(which % waiting.length, actor, again);
    this.tell(`${actor.name} gets the entry ${entry.id}-${entry.epoch}`);
    void actor.run(() => run(entry));
    await settle();
    return true;
  }

  dropEntry(which: number): void {
    const { waiting } = this.#queue;
    const [entry] = waiting.splice(which % Math.max(1, waiting.length), 1);
    if (entry) this.tell(`the queue loses the entry ${entry.id}-${entry.epoch}`);
  }

  /** From now on nothing fails: every job must end, with what it must come to. */
  async end(): Promise<void> {
    this.tell('nothing fails any more');
    const until = this.now + FAIR_MS;
    for (let turn = 0; !this.#broken; turn++) {
      while (!this.#broken && ((await this.step(0)) || (await this.take(0, turn++, false))));
      if (!this.#hasOpenJobs()) break;
      if (this.now > until) throw new Broken(`${this.#listOpen()} never end`);
      this.now += 2_500;
    }
    this.check();
    await this.#checkEnds();
    this.now += DAY_MS + 60_000;
    this.#actors = [];
    await this.removeOld();
    while ((await this.step(0)) && !this.#broken);
    this.check();
    if (this.#checks.rows.size > 0) throw new Broken('jobs that ended long ago are not removed');
  }

  stop(): void {
    for (const actor of this.#actors) actor.crash();
  }

  get #around() {
    return { database: this.#database, queue: this.#queue, host: this.#host };
  }

  async #checkEnds(): Promise<void> {
    const ends = await this.#database.real<
      { id: string; kind: string; state: string; promoted: number; output: Buffer | null }[]
    >`select id, kind, state, (select count(*)::int from sim.promoted where job = id) as promoted,
        (select string_agg(bytes, '' order by seq) from job_chunks where job = id) as output from jobs`;
    for (const { id, kind, state, promoted, output } of ends) {
      const starts = this.#host.starts.get(id) ?? 0;
      const hasSucceeded = state === 'succeeded';
      const text = output?.toString() ?? '';
      if (starts > 1) throw new Broken(`${id} was started ${starts} times`);
      if (!OUTPUT.startsWith(text)) throw new Broken(`the output of ${id} is "${text}"`);
      if (kind === 'parse' && promoted !== Number(hasSucceeded))
        throw new Broken(`${id} ${state} and was promoted ${promoted} times`);
      if (kind === 'command' && hasSucceeded && (starts !== 1 || text !== OUTPUT))
        throw new Broken(`${id} succeeded with ${starts} starts and the output "${text}"`);
    }
  }

  #hasOpenJobs = () =>
    this.#actors.some(actor => roleOf(actor) === 'C' && actor.calls.length > 0) ||
    [...this.#checks.rows.values()].some(row => row.finished === null);

  #listOpen = () =>
    [...this.#checks.rows.values()]
      .filter(row => row.finished === null)
      .map(row => row.name)
      .join(', ');

  #idOf = (name: string) =>
    [...this.#checks.rows.values()].find(row => row.name === name)?.id ?? name;

  #runnable(): Runnable[] {
    const late = this.#late.map(call => ({ call }));
    const own = this.#actors.flatMap((actor): Runnable[] => [
      ...actor.calls.map(call => ({ call })),
      ...actor.timers.filter(({ due }) => due <= this.now).map(timer => ({ actor, timer })),
    ]);
    return [...own, ...late];
  }

  #nextTimer = () =>
    Math.min(
      ...this.#actors.flatMap(({ timers }) => timers.map(({ due }) => due)),
      this.now + 5_000,
    );

  async #fire({ actor, timer }: { actor: Actor; timer: Actor['timers'][number] }): Promise<void> {
    if (timer.every) timer.due = this.now + timer.every;
    else actor.timers.splice(actor.timers.indexOf(timer), 1);
    actor.run(timer.call);
    await settle();
  }

  async #execute(call: Call): Promise<void> {
    this.#late = this.#late.filter(other => other !== call);
    this.#database.setTime(this.now, this.offset);
    const at = this.#story.length;
    await execute(call);
    const label = call.label();
    if (label) this.#story.splice(at, 0, this.#line(`${call.actor.name} ${label}`));
    if (call.outcome && 'error' in call.outcome) this.tell(`  it fails: ${call.outcome.error}`);
  }

  async #hear(call: Call): Promise<void> {
    await hear(call);
  }

  async #act(what: string, work: (actor: Actor) => Promise<void>, role = 'C'): Promise<void> {
    const actor = new Actor(`${role}${++this.#born}`, this);
    this.#actors.push(actor);
    this.tell(`${actor.name} ${what}`);
    const leave = () => {
      this.#actors = this.#actors.filter(other => other !== actor);
    };
    void actor.run(() => work(actor).then(leave, leave));
    await settle();
  }

  async #startWorker(name: string): Promise<void> {
    const actor = new Actor(name, this);
    this.#actors.push(actor);
    this.#workers.set(
      actor,
      actor.run(() => startWorker(actor, this.#around, () => this.#failed.push(actor))),
    );
    await settle();
  }

  async #startDispatcher(name: string): Promise<void> {
    const actor = new Actor(name, this);
    this.#actors.push(actor);
    actor.run(() => startDispatcher(actor, this.#around));
    await settle();
  }
}
