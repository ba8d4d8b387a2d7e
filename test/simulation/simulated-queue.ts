import type { QueueName } from '../../shared/jobs/catalog.ts';
import type { JobQueues, QueueEntry } from '../../shared/jobs/queue.ts';
import type { Actor } from './actor.ts';
import { actors } from './virtual-time.ts';

export interface Waiting extends QueueEntry {
  queue: QueueName;
}

const same = (a: QueueEntry, b: QueueEntry) => a.id === b.id && a.epoch === b.epoch;

/** A queue that the schedule may have lose, repeat and reorder its entries. */
export class SimulatedQueue {
  waiting: Waiting[] = [];
  active: (Waiting & { actor: Actor })[] = [];

  /** What the product sees of it. */
  readonly queues = {
    add: (queue: QueueName, entries: QueueEntry[]) =>
      this.#ask('adds to the queue', () => {
        for (const entry of entries) this.waiting.push({ ...entry, queue });
      }),
    missing: (_queue: QueueName, entries: QueueEntry[]) =>
      this.#ask('asks what the queue has', () =>
        entries.filter(entry => ![...this.waiting, ...this.active].some(one => same(one, entry))),
      ),
  } as unknown as JobQueues;

  /** Gives an entry to a worker. `again` leaves it in the queue, too. */
  take(at: number, actor: Actor, again: boolean): QueueEntry {
    const entry = this.waiting[at] as Waiting;
    if (!again) this.waiting.splice(at, 1);
    this.active.push({ ...entry, actor });
    const { queue: _, ...given } = entry;
    return given;
  }

  done(entry: QueueEntry, actor: Actor): void {
    const at = this.active.findIndex(one => same(one, entry) && one.actor === actor);
    if (at >= 0) this.active.splice(at, 1);
  }

  /** The entries of a dead worker come again. */
  returnOf(actor: Actor): void {
    for (const { actor: holder, ...entry } of this.active)
      if (holder === actor) this.waiting.push(entry);
    this.active = this.active.filter(entry => entry.actor !== actor);
  }

  #ask<T>(label: string, effect: () => T): Promise<T> {
    const actor = actors.getStore();
    if (!actor) throw new Error('no actor asks this of the queue');
    return actor.call(() => label, effect, { lost: () => new Error('the queue is unavailable') });
  }
}
