import type { Request } from 'express';
import type { z } from 'zod';
import { sqlState } from '../../shared/database/connect.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { sayProblem } from './say-problem.ts';

/** The request's JSON body, parsed by the schema. Throws `invalid_input`, which names each wrong field. */
export function parseBody<S extends z.ZodType>(req: Request, schema: S): z.output<S> {
  if (req.body === undefined) {
    const other = req.get('Content-Type');
    throw other && !/^application\/json\s*(;|$)/i.test(other)
      ? new WindlassError('unsupported_media_type', {
          detail: `${other}.`,
          hint: 'Send application/json.',
        })
      : invalidInput(
          [{ field: 'body', problem: 'is required' }],
          'Send JSON, with Content-Type: application/json.',
        );
  }
  return parseInput(req.body, schema);
}

/** Parses `{}` where there is no body. */
export function parseOptionalBody<S extends z.ZodType>(req: Request, schema: S): z.output<S> {
  const has = (name: string) => req.get(name) !== undefined;
  const isSent = has('Transfer-Encoding') || Number(req.get('Content-Length') ?? 0) > 0;
  const isEmpty = req.body === undefined && !isSent;
  return isEmpty ? parseInput({}, schema) : parseBody(req, schema);
}

export function parseQuery<S extends z.ZodType>(req: Request, schema: S): z.output<S> {
  return parseInput(req.query, schema);
}

export function parseInput<S extends z.ZodType>(input: unknown, schema: S): z.output<S> {
  const dropped = findDropped(input);
  if (dropped !== undefined)
    throw invalidInput([{ field: dropped, problem: 'is not a known field' }], 'Leave it out.');
  const parsed = schema.safeParse(input, { error: sayProblem });
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.flatMap(issue => {
    const path = issue.path.join('.');
    // One issue lists all unknown members.
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map(key => ({
        field: path ? `${path}.${key}` : key,
        problem: 'is not a known field',
      }));
    return [{ field: path || 'body', problem: issue.message }];
  });
  throw invalidInput(fields, hintAt(fields.map(({ problem }) => problem)));
}

/** Where a member is named `__proto__`: schemas of any names drop it without a word. */
function findDropped(input: unknown): string | undefined {
  const open = [{ path: '', value: input }];
  for (const { path, value } of open) {
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) {
      if (name === '__proto__') return `${path}${name}`;
      if (typeof member === 'object') open.push({ path: `${path}${name}.`, value: member });
    }
  }
  return undefined;
}

/** An error that names each wrong field. */
export function invalidInput(
  fields: { field: string; problem: string }[],
  hint: string,
): WindlassError {
  const words = fields.slice(0, 10).map(({ field, problem }) => `${field}: ${problem}`);
  return new WindlassError('invalid_input', {
    detail: `${words.join('; ')}.`,
    hint,
    extra: { fields: fields.slice(0, 100) },
  });
}

/** A check constraint (23514) on JSON: PostgreSQL parses more strictly than this process. `field` was to be stored. */
export const refuseNonJson =
  (field: string) =>
  (error: unknown): never => {
    if (sqlState(error) !== '23514') throw error;
    const problem = 'is no JSON that the database can keep';
    throw invalidInput([{ field, problem }], 'Send JSON (RFC 8259) in UTF-8.');
  };

/** A problem about a limit ends with the name of its setting in parentheses. */
function hintAt(problems: string[]): string {
  const settings = problems.flatMap(problem => /\((LIMIT_[A-Z_]+)\)$/.exec(problem)?.[1] ?? []);
  const [first] = settings;
  return `Correct the named fields.${first ? ` ${first} sets the limit.` : ''}`;
}
