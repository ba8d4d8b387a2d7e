import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import type { Options } from './options.ts';
import type { components } from './schema.ts';

type Schemas = components['schemas'];

/** The service tries for a minute to reach a host. */
export const LOGIN_MS = 120_000;

/** What a host asks its user at the login. */
export type Challenge = Schemas['LoginChallenge'];
export type Credentials = Options<Schemas['HostCredential']>;

export interface LoginOptions {
  /** Called where the host asks for more, such as a one-time code: one answer for each prompt, before the challenge expires. */
  answer?: ((challenge: Challenge) => string[] | Promise<string[]>) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * The result of a login, after all questions of the host. Throws WindlassError where it is refused, and
 * `answer_required` where nobody answers a question.
 */
export async function logIn(
  { api }: Connection,
  begin: () => Promise<Schemas['OpenedSession'] | Challenge>,
  { answer, signal }: LoginOptions,
): Promise<Schemas['OpenedSession']> {
  let asked = await begin();
  while ('challenge' in asked) {
    if (!answer) throw answerRequired(asked);
    const { sid, challenge } = asked;
    const body = { challenge, answers: await answer(asked) };
    const params = { path: { sid } };
    asked = await unwrap(
      api.POST('/api/remotes/{sid}/answers', { params, body, signal, timeoutMs: LOGIN_MS }),
    );
  }
  return asked;
}

function answerRequired({ instruction, prompts }: Challenge): WindlassError {
  const texts = [instruction, ...prompts.map(({ text }) => text)].filter(Boolean).join(' ');
  return new WindlassError({
    code: 'answer_required',
    detail: `The host asks: ${texts}`,
    hint: 'Give `answer`, which is called with the prompts.',
  });
}
