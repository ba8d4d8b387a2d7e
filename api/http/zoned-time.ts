import { z } from 'zod';

/** A time that a request gives. */
export const zonedTime = z.iso.datetime({
  offset: true,
  error: 'must be a time in ISO 8601 with its zone, such as 2030-01-01T00:00:00Z',
});
