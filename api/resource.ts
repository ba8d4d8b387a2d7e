import type { Request, RequestHandler, Response, Router } from 'express';
import { WindlassError } from '../shared/errors.ts';

type Method = 'get' | 'put' | 'post' | 'delete';
type Handle = (req: Request, res: Response) => Promise<void> | void;

/** Routes the methods of one path; any other method is answered 405 with the ones there are. */
export function resource(
  router: Router,
  path: string,
  methods: Partial<Record<Method, Handle>>,
): void {
  const route = router.route(path);
  for (const [method, handle] of Object.entries(methods) as [Method, Handle][])
    route[method](handle as RequestHandler);
  const allowed = Object.keys(methods).map(method => method.toUpperCase());
  if (methods.get) allowed.push('HEAD');
  const allow = allowed.join(', ');
  route.all(req => {
    throw new WindlassError('method_not_allowed', {
      detail: `Method not allowed: ${req.method} cannot be used here.`,
      hint: `Use ${allow}.`,
      headers: { Allow: allow },
    });
  });
}

/** A path parameter; Express types allow more than one value. */
export function pathParameter(req: Request, name: string): string {
  const value: unknown = req.params[name];
  return typeof value === 'string' ? value : '';
}
