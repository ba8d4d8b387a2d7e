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
  z.preprocess(read, z.number().int().min(min).max(max).default(otherwise));

export const optionalQueryInteger = ({ min, max }: Record<'min' | 'max', number>) =>
  z.preprocess(read, z.number().int().min(min).max(max).optional());
