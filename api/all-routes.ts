/// <reference types="vite/types/importMeta.d.ts" />
import type { RouteFile } from './http/routes.ts';

/** The default exports of all files in api/routes. The bundler and vitest list them. */
export const ROUTES: RouteFile[] = Object.values(
  import.meta.glob<RouteFile>(['./routes/*.ts', '!./routes/*.test.ts'], {
    eager: true,
    import: 'default',
  }),
);
