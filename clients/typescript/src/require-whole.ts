import { WindlassError } from './error.ts';

/** Throws `invalid_input` unless these are whole numbers from `least` on, as far as they are given. */
export function requireWhole(given: Record<string, number | undefined>, least = 0): void {
  for (const [name, value = least] of Object.entries(given))
    if (!Number.isInteger(value) || value < least)
      throw new WindlassError({
        code: 'invalid_input',
        detail: `${name} is ${value}: give a whole number from ${least} on.`,
      });
}

/** Without one there is no end. */
export function requireLimit(limit: number): void {
  if (limit !== Infinity) requireWhole({ limit });
}
