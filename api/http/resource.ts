import { type Request, Router } from 'express';
import { WindlassError } from '../../shared/errors.ts';
import { callOperation, type Operation } from '../openapi/operation.ts';

export type Method = 'get' | 'put' | 'post' | 'delete';

/** An operation with its place. */
export interface RoutedOperation {
  path: string;
  method: Method;
  operation: Operation;
}

/** A router that knows what its operations are, so that they can be described and tested one by one. */
export type OperationRouter = Router & { operations: RoutedOperation[] };

export function createRouter(): OperationRouter {
  return Object.assign(Router(), { operations: [] });
}

/** Routes and describes the methods of one path; any other method is answered 405 with the ones there are. */
export function resource(
  router: OperationRouter,
  path: string,
  methods: Partial<Record<Method, Operation>>,
): void {
  const route = router.route(path);
  for (const [method, operation] of Object.entries(methods) as [Method, Operation][]) {
    route[method]((req, res) => callOperation(operation, req, res));
    router.operations.push({ path, method, operation });
  }
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
