import type { ApiContext } from '../context.ts';
import {
  comparePaths,
  createRouter,
  type OperationRouter,
  type RoutedOperation,
  registerResources,
} from './resource.ts';

/**
 * Where routes are mounted, and the prefix of their documented paths; with a prefix they are at the root, too. app.ts
 * has the order of the groups, and the middleware before each.
 */
const PREFIXES = {
  /** For everyone. */
  public: '',
  /** For authenticated users. */
  monitoring: '',
  /** For everyone. */
  login: '/api',
  /** For authenticated users; the handlers read the request's body. */
  'raw-body': '/api',
  /** For authenticated users; the body was parsed as JSON. */
  'json-body': '/api',
};
type RouteGroup = keyof typeof PREFIXES;

/** `describeAll` returns the operations of all files, by their documented paths, once all files have added theirs. */
type AddRoutes = (
  router: OperationRouter,
  api: ApiContext,
  describeAll: () => RoutedOperation[],
) => void;

/** What a file of api/routes exports. */
export interface RouteFile {
  group: RouteGroup;
  add: AddRoutes;
}

export const routes = (group: RouteGroup, add: AddRoutes): RouteFile => ({ group, add });

/** A router for each group, with the routes of its files. */
export function createRouters(
  api: ApiContext,
  files: RouteFile[],
): Record<RouteGroup, OperationRouter> {
  const groups = Object.keys(PREFIXES) as RouteGroup[];
  const routers = Object.fromEntries(groups.map(group => [group, createRouter()])) as Record<
    RouteGroup,
    OperationRouter
  >;
  const describe = (group: RouteGroup) =>
    routers[group].operations.map(one => ({ ...one, path: `${PREFIXES[group]}${one.path}` }));
  const describeAll = () => groups.flatMap(describe).sort((a, b) => comparePaths(a.path, b.path));
  for (const { group, add } of files) add(routers[group], api, describeAll);
  for (const router of Object.values(routers)) registerResources(router);
  return routers;
}
