import { z } from 'zod';

/** The program's own words for one command line: execve's limit for one argument is 128 KiB. */
export const commandText = z
  .string()
  .min(1)
  .refine(text => !text.includes('\0'), 'must not hold a NUL character')
  .refine(text => Buffer.byteLength(text) <= 131_000, 'must be at most 131,000 bytes long')
  .refine(text => !/\p{Surrogate}/u.test(text), 'must be well-formed Unicode');

const VARIABLE_BYTES = 65_536;
export const INPUT_BYTES = 1_048_576;
const noNul = (text: string) => !text.includes('\0');
const wellFormed = (text: string) => !/\p{Surrogate}/u.test(text);

/** A command, and how it is run. */
export const commandPayload = z.object({
  command: z.string(),
  /** Relative to the account's home, where the path is relative or begins with `~/`. */
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  stdin: z.string().optional(),
  /** Seconds, from its start. */
  timeout: z.number().optional(),
});

/** Of version 4 is `~/` in `cwd`: workers of before look for a folder of that name. */
export const commandVersion = ({ cwd }: z.output<typeof commandPayload>) =>
  cwd !== undefined && beginsAtHome(cwd) ? 4 : 3;

/** As `~` or `~/run`. */
export const beginsAtHome = (path: string) => /^~(\/|$)/.test(path);

/** Rules for what is sent beside the command. */
export const launchOptions = {
  cwd: z
    .string()
    .min(1)
    .max(4096)
    .refine(noNul, 'must not hold a NUL character')
    .refine(wellFormed, 'must be well-formed Unicode')
    .optional(),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of letters, digits and _'),
      z
        .string()
        .refine(noNul, 'must not hold a NUL character')
        .refine(wellFormed, 'must be well-formed Unicode'),
    )
    .refine(
      env =>
        Object.entries(env).reduce((sum, pair) => sum + Buffer.byteLength(pair.join('=')) + 1, 0) <=
        VARIABLE_BYTES,
      'must be at most 64 KiB long',
    )
    .optional(),
  stdin: z
    .string()
    .refine(noNul, 'must not hold a NUL character')
    .refine(wellFormed, 'must be well-formed Unicode')
    .refine(text => Buffer.byteLength(text) <= INPUT_BYTES, 'must be at most 1 MiB long')
    .optional(),
  timeout: z.number().positive().max(31_536_000).optional(),
};
