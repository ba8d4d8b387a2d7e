import { z } from 'zod';
import { fingerprint, keyBytes } from '../../shared/ssh/keys.ts';
import { isAuthority, isFor, keyLineIn, readPin } from '../../shared/ssh/pins.ts';
import { invalidInput } from '../http/validate.ts';

const MAX_PINS = 20;

const pin = z
  .string()
  .max(4_096)
  .transform((line, context) => {
    const read = readPin(line);
    if ('pin' in read) return read.pin;
    context.addIssue({ code: 'custom', message: read.problem });
    return z.NEVER;
  });

/** What a host is known by: its keys, and authorities that certify them. */
export const pins = z
  .array(pin)
  .min(1)
  .max(MAX_PINS)
  .describe(
    'The public keys of the host, `ssh-ed25519 AAAA…`, and authorities that certify them, `@cert-authority *.example.org ssh-ed25519 AAAA…`.',
  );

interface Pinned {
  address: string;
  port: number;
  keys: string[];
}

/** Throws `invalid_input` where an authority is for other hosts. */
export function checkAuthorities({ keys, ...at }: Pinned): void {
  if (!keys.some(isAuthority)) return;
  const problems = keys.flatMap((line, index) =>
    isAuthority(line) && !isFor(line, at)
      ? [
          {
            field: `keys.${index}`,
            problem: `is an authority for ${line.split(' ')[1]}, which ${at.address} does not fit`,
          },
        ]
      : [],
  );
  if (problems.length > 0)
    throw invalidInput(
      problems,
      'Give patterns that fit the address of the host, such as *.example.org.',
    );
}

/** The authorities stay where the keys that a host shows are pinned. */
export const withShownKeys = (before: string[], shown: string[]) => [
  ...before.filter(isAuthority),
  ...shown,
];

/** Pins, and the fingerprint of the key in each. */
export const toHostKeys = (keys: string[]) => ({
  keys,
  fingerprints: keys.map(line => fingerprint(keyBytes(keyLineIn(line)))),
});
