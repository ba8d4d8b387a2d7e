import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { LeakyBuckets } from '../concurrency/leaky-buckets.ts';
import type { User } from './user.ts';

const BURST = 300;
/** Many more, because scripts make hundreds of projects. */
const PROJECTS = 3_000;
/** Seconds after which there is room for one more, once a burst is used up. */
const SECONDS = 10;
/**
 * What costs its user next to nothing. What ends such things is never refused, and cannot be done more often. Of a project the
 * end is an entry and the making is none, so its making has a rate. CredentialRates has one for each kind of credential; jobs
 * and sessions cost work on hosts.
 */
const CHEAP: ReadonlySet<AuditAction> = new Set(['link', 'webhook.create', 'project.acl']);

/** How many entries of the audit a user causes cheaply, in this process: each is kept for a year, and counts for nobody. */
export class AuditRates {
  readonly #entries = new LeakyBuckets({ atOnce: BURST, seconds: SECONDS });
  readonly #projects = new LeakyBuckets({ atOnce: PROJECTS, seconds: SECONDS });

  /** Counts an entry. Throws `too_many_requests`, but not for administrators. */
  count({ username, administrator }: User, action: AuditAction): void {
    if (administrator || !CHEAP.has(action)) return;
    const wait = this.#entries.add(username);
    const what = `${BURST} links, webhooks and changes of who is in projects`;
    if (wait > 0) throw tooMany(what, wait, 'Use a link again until it expires.');
  }

  /** Counts a project that is made. Throws `too_many_requests`, but not for administrators. */
  countProject({ username, administrator }: User): void {
    const wait = administrator ? 0 : this.#projects.add(username);
    if (wait > 0) throw tooMany(`${PROJECTS} projects`, wait, 'Put more models into one project.');
  }
}

const tooMany = (what: string, wait: number, hint: string) =>
  new WindlassError('too_many_requests', {
    detail: `at most ${what} in one burst, and then one in ${SECONDS} seconds.`,
    hint: `Wait ${wait} s. ${hint}`,
    headers: { 'Retry-After': String(wait) },
  });
