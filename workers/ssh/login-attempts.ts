import type { CircuitBreakers } from './circuit-breaker.ts';
import type { TryLogin } from './connect.ts';
import type { Connection } from './log-in.ts';
import type { LoginDialogue } from './login-dialogue.ts';
import { retryDropped } from './retry-dropped.ts';

/** Makes the attempts of one login at each of its hops, as the circuit breakers allow them. */
export class LoginAttempts {
  readonly #breakers: CircuitBreakers;
  readonly #dialogue: LoginDialogue | undefined;

  constructor(breakers: CircuitBreakers, dialogue: LoginDialogue | undefined) {
    this.#breakers = breakers;
    this.#dialogue = dialogue;
  }

  readonly run: TryLogin = (hops, logIn, signal) => {
    const attempt = async () => {
      const begin = () => this.#begin(logIn());
      const { connecting } = await this.#breakers.of(hops).execute(begin, signal);
      return connecting;
    };
    // A job has tries of its own.
    return this.#dialogue ? retryDropped(attempt, signal) : attempt();
  };

  /**
   * Resolves for a circuit breaker when the host asks its user: it is reachable then, and others must not wait for the
   * user.
   */
  async #begin(connecting: Promise<Connection>): Promise<{ connecting: Promise<Connection> }> {
    await (this.#dialogue ? Promise.race([connecting, this.#dialogue.next]) : connecting);
    return { connecting };
  }
}
