import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../../shared/errors/errors.ts';

/** RFC 9457, with our code, hint and request id; further members belong to the code. */
export const problem = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
    hint: z.string().optional(),
    requestId: z.string(),
  })
  .meta({
    id: 'Problem',
    description: 'An error: RFC 9457. X-Service-Message repeats `detail`, X-Service-Hint `hint`.',
  });
