import { z } from 'zod';

/** Only decimal digits are a number here: Number('') is 0, Number('0x10') is 16. */
const read = (value: unknown) =>
  typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) + 0 : value;

/** A whole number in a query, from `min` to `max`. */
export const queryInteger = ({
  min,
  max,
  default: otherwise,
}: Record<'min' | 'max' | 'default', number>) =>
  z.preprocess(read, wholeNumber(min, max).default(otherwise));

export const optionalQueryInteger = ({ min, max }: Record<'min' | 'max', number>) =>
  z.preprocess(read, wholeNumber(min, max).optional());

/** One text for all that is none: 1.5 and 1e2 are no digits, and so are texts to the schema. */
function wholeNumber(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.number({ error }).int({ error }).min(min, { error }).max(max, { error });
}
