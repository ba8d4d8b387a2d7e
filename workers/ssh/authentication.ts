import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Credential } from '../../shared/secrets/secrets.ts';
import { MAX_PROMPTS } from '../../shared/ssh/max-prompts.ts';
import { certifiedKey } from './certified-key.ts';
import { type HostWords, harmless, readable } from './host-words.ts';
import type { Permit } from './login-refusals.ts';

/** One round of a dialogue: what the host asks (RFC 4256, 3.2). */
export interface Round {
  instruction: string;
  prompts: { text: string; echo: boolean }[];
}

/** Asks the user. What it throws ends the login. */
export type Ask = (round: Round) => Promise<string[]>;

interface Login {
  username: string;
  credential: Credential;
  ask: Ask;
  /** Awaited before a part of the credential, or an answer, is sent. What it throws ends the login. */
  permit?: Permit;
}

/** Servers ask for several factors in turn; none asks for more than this. */
const MAX_FACTORS = 5;

/**
 * Sends each factor once: for a password sent by two methods a server counts two refusals, and address bans count
 * those. If a factor is accepted and another one required (RFC 4252, 5.1), that follows.
 */
export class Authentication {
  readonly #login: Login;
  readonly #words: HostWords;
  readonly #fail: (error: unknown) => void;
  #factors = 0;
  /** Undefined once it was sent, in whichever way. */
  #password: string | undefined;

  /** `fail` ends the login with what `ask` has thrown. */
  constructor(login: Login, words: HostWords, fail: (error: unknown) => void) {
    this.#login = login;
    this.#words = words;
    this.#fail = fail;
    this.#password = login.credential.password;
  }

  /** ssh2 calls it first, and after each answer but success. */
  readonly next: ssh2.AuthHandlerMiddleware = (left, isPartial, answer) => {
    const { username } = this.#login;
    // The types of ssh2 lack false, which ends the login as refused.
    const proceed = answer as (method: ssh2.AnyAuthMethod | false) => void;
    // RFC 4252, 5.2: the answer to `none` is the list of methods; ssh2 has none before.
    if (!left) return proceed({ type: 'none', username });
    if ((this.#factors > 0 && !isPartial) || this.#factors >= MAX_FACTORS) return proceed(false);
    this.#factors++;
    this.#choose(left).then(proceed).catch(this.#fail);
  };

  async #choose(left: string[]): Promise<ssh2.AnyAuthMethod | false> {
    const { username, credential } = this.#login;
    const { privateKey, certificate } = credential;
    if (privateKey !== undefined && left.includes('publickey')) {
      await this.#login.permit?.();
      this.#words.credentialSent();
      const key = certificate === undefined ? privateKey : certifiedKey(privateKey, certificate);
      return { type: 'publickey', username, key };
    }
    if (this.#password !== undefined && left.includes('password')) {
      await this.#login.permit?.();
      return { type: 'password', username, password: this.#takePassword() };
    }
    if (left.includes('keyboard-interactive'))
      return { type: 'keyboard-interactive', username, prompt: this.#onPrompts };
    // It is asked for here, where the host wants it in no dialogue.
    if (this.#factors > 1 && left.includes('password')) {
      const round = { instruction: '', prompts: [{ text: 'Password: ', echo: false }] };
      const [password = ''] = await this.#login.ask(round);
      await this.#login.permit?.();
      return { type: 'password', username, password };
    }
    return false;
  }

  readonly #onPrompts: ssh2.KeyboardInteractiveAuthMethod['prompt'] = (
    name,
    instructions,
    _language,
    prompts,
    finish,
  ) => {
    if (prompts.length > MAX_PROMPTS) return this.#fail(asksTooMuch(prompts.length));
    const round: Round = {
      instruction: readable(`${name}\n${instructions}`),
      prompts: prompts.map(({ prompt, echo = false }) => ({ text: harmless(prompt), echo })),
    };
    this.#answer(round).then(finish).catch(this.#fail);
  };

  async #answer(round: Round): Promise<string[]> {
    const [first, ...others] = round.prompts;
    if (this.#password !== undefined && first && !first.echo && others.length === 0) {
      await this.#login.permit?.();
      return [this.#takePassword()];
    }
    // Sent or not wanted first: no later prompt is for it.
    this.#password = undefined;
    const answers = await this.#login.ask(round);
    await this.#login.permit?.();
    this.#words.credentialSent();
    return answers;
  }

  #takePassword(): string {
    this.#words.credentialSent();
    const password = this.#password ?? '';
    this.#password = undefined;
    return password;
  }
}

const asksTooMuch = (prompts: number) =>
  new WindlassError('remote_authentication_failed', {
    detail: `The host asks ${prompts} questions at once, of which at most ${MAX_PROMPTS} can be answered.`,
    hint: 'Log in with ssh and a terminal to see what it asks.',
  });
