import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { Ask, Round } from './authentication.ts';

/** What a host asks, for the user to answer in time. */
export interface Challenge extends Round {
  id: string;
  expires: Date;
}

/** For the answers to one challenge. */
const ANSWER_MS = 90_000;
/** For the whole login: sshd's LoginGraceTime is 120 s, from the connection on. */
export const DIALOGUE_MS = 110_000;

interface Pending {
  challenge: Challenge;
  give(answers: string[]): void;
  cancel(): void;
  timer: NodeJS.Timeout;
}

/** Passes a host's questions to the user, and the answers back, while a login waits. */
export class LoginDialogue {
  /** The job that began the login. */
  readonly job: string;
  readonly #deadline = Date.now() + DIALOGUE_MS;
  #pending: Pending | undefined;
  #wasAsked = false;
  #isCancelled = false;
  #announce: (challenge: Challenge) => void = () => {};
  #next: Promise<Challenge>;

  constructor(job: string) {
    this.job = job;
    this.#next = this.#awaitQuestion();
  }

  /** Whether the user was asked: nobody else can repeat the login. */
  get wasAsked(): boolean {
    return this.#wasAsked;
  }

  /** The challenge that is to be answered, or the next one. */
  get next(): Promise<Challenge> {
    return this.#next;
  }

  readonly ask: Ask = round =>
    new Promise((resolve, reject) => {
      if (this.#isCancelled) throw challengeExpired();
      const expires = Math.min(Date.now() + ANSWER_MS, this.#deadline);
      const cancel = () => {
        clearTimeout(timer);
        this.#pending = undefined;
        reject(challengeExpired());
      };
      const timer = setTimeout(cancel, expires - Date.now());
      const challenge = { ...round, id: newId(), expires: new Date(expires) };
      this.#pending = { challenge, give: resolve, cancel, timer };
      this.#wasAsked = true;
      this.#announce(challenge);
    });

  /** Whether this challenge is to be answered here. */
  waitsFor(challenge: string): boolean {
    return this.#pending?.challenge.id === challenge;
  }

  /** Throws `challenge_expired`, or `invalid_input` where the answers are not as many as the prompts. */
  answer(id: string, answers: string[]): void {
    const pending = this.#pending;
    if (pending?.challenge.id !== id) throw challengeExpired();
    const wanted = pending.challenge.prompts.length;
    if (answers.length !== wanted)
      throw new WindlassError('invalid_input', {
        detail: `answers: the challenge has ${wanted} prompts, and wants as many answers.`,
        hint: 'Send one answer for each prompt, in their order; the challenge still waits.',
      });
    clearTimeout(pending.timer);
    this.#pending = undefined;
    this.#next = this.#awaitQuestion();
    pending.give(answers);
  }

  /** Ends a login that waits for its user, now or later. */
  cancel(): void {
    this.#isCancelled = true;
    this.#pending?.cancel();
  }

  #awaitQuestion(): Promise<Challenge> {
    return new Promise(resolve => {
      this.#announce = resolve;
    });
  }
}

export function challengeExpired(): WindlassError {
  return new WindlassError('challenge_expired', {
    detail: 'it was answered before, or its time is over.',
    hint: 'Begin the login again: POST /api/remotes, or POST /api/remotes/(sid)/login for an open session.',
  });
}

/** The error of a lost connection whose login only the user can repeat. */
export function reconnectRequired(hostname: string): WindlassError {
  return new WindlassError('reconnect_required', {
    detail: `the connection to ${hostname} is lost, and its host asks the user for more than the password or key.`,
    hint: 'Log in again with POST /api/remotes/(sid)/login.',
  });
}
