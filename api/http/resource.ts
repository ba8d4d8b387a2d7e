import { type Request, type RequestHandler, Router } from 'express';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import { callOperation, type Operation } from '../openapi/operation.ts';

export type Method = 'get' | 'head' | 'options' | 'patch' | 'put' | 'post' | 'delete';

/** An operation with its path and method. */
export interface RoutedOperation {
  path: string;
  method: Method;
  operation: Operation;
}

type Methods = Partial<Record<Method, Operation>>;

/** A router that knows its operations, so that they can be described, and tested one by one. */
export type OperationRouter = Router & {
  operations: RoutedOperation[];
  resources: { path: string; methods: Methods }[];
};

export function createRouter(): OperationRouter {
  return Object.assign(Router(), { operations: [], resources: [] });
}

/** Adds the methods of one path; registerResources() routes them. */
export function resource(router: OperationRouter, path: string, methods: Methods): void {
  router.resources.push({ path, methods });
  for (const [method, operation] of Object.entries(methods) as [Method, Operation][])
    router.operations.push({ path, method, operation });
}

/**
 * Routes the router's resources, literal segments before parameters, so that the order of files does not matter. Other
 * methods of a path are answered 405. Throws where two resources have one path.
 */
export function registerResources(router: OperationRouter): void {
  const sorted = router.resources.toSorted((a, b) => comparePaths(a.path, b.path));
  for (const [i, { path, methods }] of sorted.entries()) {
    const before = sorted[i - 1]?.path;
    if (before !== undefined && comparePaths(before, path) === 0)
      throw new Error(`${before} and ${path} are the same path: make them one resource`);
    registerResource(router, path, methods);
  }
}

function registerResource(router: OperationRouter, path: string, methods: Methods): void {
  const route = router.route(path);
  const ofRecord = /\/:\w+$/.test(path);
  for (const [method, operation] of Object.entries(methods) as [Method, Operation][]) {
    if (ofRecord && (method === 'put' || method === 'delete')) route[method](refuseSlash);
    route[method]((req, res) => callOperation(operation, req, res));
  }
  const allowed = Object.keys(methods).map(method => method.toUpperCase());
  if (methods.get) allowed.push('HEAD');
  const allow = allowed.join(', ');
  route.all(req => {
    throw new WindlassError('method_not_allowed', {
      detail: `${req.method} cannot be used here.`,
      hint: `Use ${allow}.`,
      headers: { Allow: allow },
    });
  });
}

/**
 * Clients resolve `/models/1/files/..` to `/models/1/`, which must not be the model: Express takes the slash. PATCH is for
 * uploads by tus alone, below which nothing is.
 */
const refuseSlash: RequestHandler = ({ baseUrl, path }, _res, next) => {
  if (!path.endsWith('/')) return next();
  throw notFound(
    `there is no ${baseUrl}${path}: it ends with a slash.`,
    'Leave the slash out. If a name is . or .., clients drop it and leave such an address.',
  );
};

/** Segment by segment: literals, then parameters, then what matches the rest of a path; 0 where both match the same. */
export function comparePaths(a: string, b: string): number {
  const [those, these] = [toSegments(a), toSegments(b)];
  for (const [i, segment] of those.entries()) {
    const other = these[i];
    if (other === undefined) return 1;
    if (segment !== other) return segment < other ? -1 : 1;
  }
  return those.length - these.length;
}

/** Whether a path is one of this pattern, as Express would match it, but for its case and a slash at its end. */
export function matchesPath(pattern: string, path: string): boolean {
  const source = pattern
    .replace(/[.]/g, '\\$&')
    .replace(/\{([^{}]*)\}/g, '(?:$1)?')
    .replace(/:\w+/g, '[^/]+')
    .replace(/\*\w+/g, '.+');
  return new RegExp(`^${source}$`).test(path);
}

/** `~` and the DEL character sort behind all that a literal segment has. */
const toSegments = (path: string) =>
  path
    .replace(/[{}]/g, '')
    .split('/')
    .map(segment => ({ ':': '~', '*': '\x7f' })[segment.charAt(0)] ?? segment);

/** A path parameter; Express's types allow several values. */
export function pathParameter(req: Request, name: string): string {
  const value: unknown = req.params[name];
  return typeof value === 'string' ? value : '';
}
