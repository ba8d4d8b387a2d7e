import { z } from 'zod';
import { parseInput } from '../http/validate.ts';

const BASE64 = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;

/** Text in UTF-8, in base64. */
const encodedText = z.string().transform((text, context) => {
  try {
    if (BASE64.test(text))
      return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64'));
  } catch {
    // No UTF-8.
  }
  context.addIssue({ code: 'custom', message: 'must be text in base64 beside user_name' });
  return z.NEVER;
});
const encodedCredentials = z.strictObject({
  user_name: encodedText,
  password: encodedText,
  target: z.string().optional(),
});

/**
 * The credentials of a login in plain text; Slycat's clients send `user_name` and `password` in base64. Any other body
 * is passed on as it is. Throws `invalid_input`.
 */
export function decodeCredentials(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'user_name')) return body;
  const { user_name: username, ...others } = parseInput(body, encodedCredentials);
  return { username, ...others };
}
