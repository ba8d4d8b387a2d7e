import type { Db } from '../../shared/database/connect.ts';
import { findForeignStore } from '../../shared/installation/store-marker.ts';
import { describeUnsupported, readUnsupported } from '../../shared/jobs/payload-versions.ts';
import {
  QueueRefusal,
  QueueTakesNothing,
  QueueTlsFault,
} from '../../shared/jobs/queue-on-redis.ts';
import { withDeadline } from '../../shared/process/deadline.ts';
import type { ApiContext } from '../context.ts';
import { toWindlassError } from '../http/to-windlass-error.ts';
import { countWorkers } from './count-workers.ts';
import { readQueueStates } from './queue-state.ts';
import { describeStuck, findStuck, STUCK_SECONDS } from './stuck-queues.ts';

/** Time limit of each check; a dependency that does not answer within it counts as unreachable. */
const DEADLINE_MS = 2_000;
/** What is counted among the jobs is used for so long: each count reads up to 100,000 rows, and anybody may ask. */
const COUNTS_KEPT_MS = 1_000;

interface Readiness {
  ready: boolean;
  /**
   * Null, or the problem in one line. Without the queue, or a worker, work is accepted and waits: that degrades the
   * service, and no other process could serve the request better.
   */
  checks: {
    database: string | null;
    objects: string | null;
    queue: string | null;
    work: string | null;
  };
  /** What works in part, these two checks too: the service can serve. */
  degraded: string[];
  /** Workers alive; null when the database cannot be reached. */
  workers: number | null;
}

/** Checks all dependencies concurrently. While a check hangs, further requests share it; counts are kept for a second. */
export class ReadinessCheck {
  readonly #api: ApiContext;
  readonly #asked = new Map<string, { answer: Promise<unknown>; until: number }>();
  #told: string | null = null;
  /** Start of this process. */
  readonly #began = performance.now();

  constructor(api: ApiContext) {
    this.#api = api;
  }

  async run(): Promise<Readiness> {
    const { db } = this.#api.database;
    const isFull = this.#api.database.wasFull();
    const [database, objects, foreign, queue, eviction, work, waiting, shortage] =
      await Promise.all([
        this.#ask('database', () => this.#api.database.assertReady().then(() => countWorkers(db))),
        this.#ask('objects', () => this.#api.objects.check()),
        // Apart: it needs the database, too, and what is not known is no problem of the objects.
        this.#ask('owner', () => findForeignStore(db, this.#api.objects)),
        this.#ask('queue', () => this.#api.queues.check()),
        this.#ask('eviction', () => this.#api.queues.evictionPolicy()),
        this.#ask(
          'work',
          () => describeWork(db, (performance.now() - this.#began) / 1_000),
          COUNTS_KEPT_MS,
        ),
        this.#ask('waiting', () => readUnsupported(db), COUNTS_KEPT_MS),
        this.#ask('free space', () => this.#api.freeSpace.describeShortage()),
      ]);
    const ofAnother = foreign.value ? describeForeign(foreign.value) : null;
    const checks = {
      database: database.problem,
      objects: objects.problem ?? ofAnother,
      queue: queue.problem,
      // Unknown where workers cannot write that they are alive.
      work: database.problem || isFull ? null : (work.value ?? null),
    };
    this.#tell(ofAnother);
    const isReady = !checks.database && !checks.objects;
    return {
      ready: isReady && !this.#api.stopping.aborted,
      checks,
      degraded: [
        ...[checks.queue, checks.work].filter(problem => problem !== null),
        ...(isFull ? [DATABASE_FULL] : []),
        ...(eviction.value ? [describeEviction(eviction.value)] : []),
        ...(waiting.value ?? []).map(kind => `${describeUnsupported(kind)}.`),
        ...(shortage.value ? [shortage.value] : []),
      ],
      workers: database.value?.alive ?? null,
    };
  }

  /** Logs it once: probes come each second, and the other checks are watched. */
  #tell(foreign: string | null): void {
    if (foreign && foreign !== this.#told) this.#api.log.warn(`not ready: ${foreign}`);
    this.#told = foreign;
  }

  #share(name: string, answer: Promise<unknown>, keptMs: number): void {
    const entry = { answer, until: Number.POSITIVE_INFINITY };
    this.#asked.set(name, entry);
    answer.then(
      () => {
        entry.until = performance.now() + keptMs;
      },
      () => {
        entry.until = 0;
      },
    );
  }

  /** `keptMs`: for how long further requests share what it found. A failure is not kept. */
  async #ask<T>(
    name: string,
    check: () => Promise<T>,
    keptMs = 0,
  ): Promise<{ value?: T; problem: string | null }> {
    const kept = this.#asked.get(name);
    const isKept = kept && performance.now() < kept.until;
    const asked = isKept ? (kept.answer as Promise<T>) : Promise.resolve().then(check);
    if (!isKept) this.#share(name, asked, keptMs);
    const deadline = { ms: DEADLINE_MS, what: `the ${name}` };
    try {
      return { value: await withDeadline(deadline, () => asked), problem: null };
    } catch (error) {
      const problem = explain(name, error);
      if (problem === CHECK_FAILED)
        this.#api.log.warn({ err: error, check: name }, 'a readiness check failed');
      return { problem };
    }
  }
}

const describeForeign = ({ problem, hint }: { problem: string; hint: string }) =>
  `${problem} ${hint}`;

const describeEviction = (policy: string) =>
  `The queue may lose entries, and their work then waits longer: the maxmemory-policy of Redis is ${policy}, not noeviction.`;

const DATABASE_FULL =
  'The disk of the database is full, or was within the last minute: what needs room there is refused.';

const NO_UPKEEP =
  'No upkeep worker is alive: jobs that wait for a slot or were lost with their worker hang.';

const CHECK_FAILED = 'It does not work; see the log of the API.';

/** One line without addresses: /readyz is open to everyone. */
function explain(name: string, error: unknown): string {
  if (error instanceof QueueRefusal)
    return 'The queue refuses the login of REDIS_URL; work is accepted and waits.';
  if (error instanceof QueueTakesNothing)
    return 'The queue is full or read-only; work is accepted and waits.';
  if (error instanceof QueueTlsFault)
    return `The queue cannot be reached: ${error.reason}; work is accepted and waits.`;
  if (name === 'queue') return 'The queue cannot be reached; work is accepted and waits.';
  const known = toWindlassError(error);
  return known.code === 'internal' ? CHECK_FAILED : known.message;
}

/** After a full outage the workers need time to start, as this process did. */
async function describeWork(db: Db, upSeconds: number): Promise<string | undefined> {
  if (upSeconds < STUCK_SECONDS) return undefined;
  const { upkeep } = await countWorkers(db);
  const problems = [
    describeStuck(await findStuck(db, await readQueueStates(db))),
    upkeep === 0 ? NO_UPKEEP : undefined,
  ];
  return problems.filter(Boolean).join(' ') || undefined;
}
