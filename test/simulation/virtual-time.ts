import { AsyncLocalStorage } from 'node:async_hooks';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { newId } from '../../shared/ids.ts';
import type { Actor } from './actor.ts';

/** The first moment of every schedule. */
export const BEGINNING = Date.UTC(2030, 0, 1);

/** Whose code runs. Timers, performance.now(), Date.now() and Math.random() of an actor are those of its world. */
export const actors = new AsyncLocalStorage<Actor>();

/** A timer of an actor: it is due at a time of the world, and fires when the schedule lets it. */
export interface VirtualTimer {
  due: number;
  every: number | undefined;
  call: () => void;
}

type Call = (...given: unknown[]) => void;

/**
 * Gives code that runs for an actor the time of its world, and leaves that of all other code, such as the driver's, alone.
 * Returns what ends that.
 */
export function installVirtualTime(): () => void {
  const real = {
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    now: performance.now,
    date: Date.now,
    random: Math.random,
    delay: timersPromises.setTimeout,
    fill: crypto.randomFillSync,
  };
  const begin =
    (original: Call, repeats: boolean) =>
    (call: Call, ms = 0, ...given: unknown[]) => {
      const actor = actors.getStore();
      if (!actor) return Reflect.apply(original, undefined, [call, ms, ...given]);
      return makeTimer(actor, () => call(...given), { ms, repeats });
    };
  const clear = (original: Call) => (timer: unknown) => {
    if (timer instanceof TimerHandle) timer.close();
    else original(timer);
  };
  const delay = (ms = 0, value?: unknown, options: { signal?: AbortSignal } = {}) => {
    const actor = actors.getStore();
    if (!actor) return real.delay(ms, value, options);
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = () => {
        timer.close();
        reject(signal?.reason);
      };
      const fire = () => {
        signal?.removeEventListener('abort', leave);
        resolve(value);
      };
      const timer = makeTimer(actor, fire, { ms, repeats: false });
      signal?.addEventListener('abort', leave);
    });
  };
  Object.assign(globalThis, {
    setTimeout: begin(real.setTimeout as unknown as Call, false),
    setInterval: begin(real.setInterval as unknown as Call, true),
    clearTimeout: clear(real.clearTimeout as Call),
    clearInterval: clear(real.clearInterval as Call),
  });
  performance.now = () => actors.getStore()?.world.now ?? real.now.call(performance);
  Date.now = () => {
    const actor = actors.getStore();
    return actor ? BEGINNING + actor.world.now : real.date();
  };
  Math.random = () => actors.getStore()?.world.random() ?? real.random();
  Object.assign(timersPromises, { setTimeout: delay });
  Object.assign(crypto, { randomFillSync: fillWithCount });
  syncBuiltinESMExports();
  // None of the random ones that were made ready before.
  for (let i = 0; i < 256; i++) newId();
  return () => {
    const { setTimeout, clearTimeout, setInterval, clearInterval } = real;
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
    performance.now = real.now;
    Date.now = real.date;
    Math.random = real.random;
    Object.assign(timersPromises, { setTimeout: real.delay });
    Object.assign(crypto, { randomFillSync: real.fill });
    syncBuiltinESMExports();
  };
}

let count = 0;

/** Instead of random bytes, so that ids of one millisecond sort by when they were made: each 16 bytes are a number of base 32. */
function fillWithCount(bytes: Buffer): Buffer {
  for (let at = 0; at < bytes.length; at += 16, count++)
    for (let digit = 0; digit < 16; digit++)
      bytes[at + 15 - digit] = Math.floor(count / 32 ** digit) % 32;
  return bytes;
}

function makeTimer(actor: Actor, call: () => void, given: { ms: number; repeats: boolean }) {
  return new TimerHandle(actor, call, given);
}

/** What setTimeout() returns, as far as the product uses it. */
class TimerHandle {
  readonly #actor: Actor;
  readonly #ms: number;
  readonly #timer: VirtualTimer;

  constructor(actor: Actor, call: () => void, { ms, repeats }: { ms: number; repeats: boolean }) {
    this.#actor = actor;
    this.#ms = Math.max(1, ms);
    this.#timer = { due: actor.world.now + this.#ms, every: repeats ? this.#ms : undefined, call };
    actor.timers.push(this.#timer);
  }

  refresh(): this {
    this.close();
    this.#timer.due = this.#actor.world.now + this.#ms;
    this.#actor.timers.push(this.#timer);
    return this;
  }

  unref(): this {
    return this;
  }

  close(): void {
    const { timers } = this.#actor;
    const at = timers.indexOf(this.#timer);
    if (at >= 0) timers.splice(at, 1);
  }
}
