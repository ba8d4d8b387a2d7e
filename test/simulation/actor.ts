import { actors, type VirtualTimer } from './virtual-time.ts';

/** The time of a world, in ms since it began. No step of the database's clock changes it. */
export interface Clock {
  now: number;
  random(): number;
}

/** Something that an actor asked of the database, the queue or a host, and that the schedule has not let happen yet. */
export interface Call {
  actor: Actor;
  /** Its text in the story; empty for what only reads. */
  label: () => string;
  /** Lets it happen there. */
  effect: () => Promise<unknown>;
  /** What the actor gets when the answer is lost. */
  lost: () => Error;
  answer: (outcome: Outcome) => void;
  /** Set once it has happened: the actor has not heard of it yet. */
  outcome?: Outcome;
  /** Called when the actor hears of it. */
  onHeard?: () => void;
}
export type Outcome = { value: unknown } | { error: unknown };

/** A process: a worker, a dispatcher, a client. All that it does outside itself is a call, which the schedule lets happen. */
export class Actor {
  readonly name: string;
  readonly world: Clock;
  calls: Call[] = [];
  timers: VirtualTimer[] = [];
  isAlive = true;

  constructor(name: string, world: Clock) {
    this.name = name;
    this.world = world;
  }

  /** Runs code of this process. */
  run<T>(work: () => T): T {
    return actors.run(this, work);
  }

  call<T>(
    label: () => string,
    effect: () => Promise<T> | T,
    { lost, onHeard }: { lost: () => Error; onHeard?: () => void },
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = (outcome: Outcome) =>
        'error' in outcome ? reject(outcome.error) : resolve(outcome.value as T);
      const call: Call = { actor: this, label, effect: async () => effect(), lost, answer };
      if (onHeard) call.onHeard = onHeard;
      if (this.isAlive) this.calls.push(call);
    });
  }

  /** Ends the process. Returns what it had asked for and what may still happen. */
  crash(): Call[] {
    this.isAlive = false;
    const open = this.calls.filter(call => !call.outcome);
    this.calls = [];
    this.timers = [];
    return open;
  }
}

/** Lets what was asked happen; the actor hears of it later. */
export async function execute(call: Call): Promise<void> {
  try {
    call.outcome = { value: await call.effect() };
  } catch (error) {
    call.outcome = { error };
  }
}

/** Tells the actor what came of its call, and waits until it has done all that it can without another answer. */
export async function hear(call: Call, outcome = call.outcome ?? { error: call.lost() }) {
  const { actor } = call;
  actor.calls = actor.calls.filter(other => other !== call);
  if (!actor.isAlive) return;
  if (outcome === call.outcome) call.onHeard?.();
  actor.run(() => call.answer(outcome));
  await settle();
}

/** Until no code of an actor can go on: all of their promises are settled or wait for the schedule. */
export async function settle(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve));
}
