import { z } from 'zod';
import { hostText } from './host-text.ts';

/** The program's own words for one command line: execve's limit for one argument is 128 KiB. */
export const commandText = hostText({
  bytes: { most: 131_000, problem: 'must be at most 131,000 bytes long' },
}).min(1);

const VARIABLE_BYTES = 65_536;
export const INPUT_BYTES = 1_048_576;

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

/** `~/` in `cwd` needs version 4: older workers look for a folder of that name. */
export const commandVersion = ({ cwd }: z.output<typeof commandPayload>) =>
  cwd !== undefined && beginsAtHome(cwd) ? 4 : 3;

/** As `~` or `~/run`. */
export const beginsAtHome = (path: string) => /^~(\/|$)/.test(path);

/** Rules for what is sent beside the command. */
export const launchOptions = {
  cwd: hostText({ max: 4096 }).min(1).optional(),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of letters, digits and _'),
      hostText(),
    )
    .refine(
      env =>
        Object.entries(env).reduce((sum, pair) => sum + Buffer.byteLength(pair.join('=')) + 1, 0) <=
        VARIABLE_BYTES,
      'must be at most 64 KiB long',
    )
    .optional(),
  stdin: hostText({
    bytes: { most: INPUT_BYTES, problem: 'must be at most 1 MiB long' },
  }).optional(),
  timeout: z.number().positive().max(31_536_000).optional(),
};
