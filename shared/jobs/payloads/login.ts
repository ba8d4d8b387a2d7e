import { z } from 'zod';

/** What the host asks the user at a login (RFC 4256), to be answered in time. */
export const loginChallenge = z
  .object({
    challenge: z.string(),
    instruction: z.string(),
    prompts: z.array(z.object({ text: z.string(), echo: z.boolean() }).meta({ id: 'LoginPrompt' })),
    expires: z.iso.datetime(),
  })
  .meta({ id: 'LoginQuestions' });

/** A login stops where the host asks something, or it is done. */
export const loginResult = z.object({
  challenge: loginChallenge.optional(),
  /** What the host said at the login, if anything. */
  banner: z.string().optional(),
  /** The account's home there, where that is known: a file manager begins there. */
  home: z.string().optional(),
});
