import type { Stack } from '../stacks/stack.ts';

/** An operation of /api/openapi.json, as far as tests ask. */
export interface Described {
  method: string;
  /** The path with `{names}`. */
  path: string;
  takesJson: boolean;
  query: string[];
  headers: string[];
}

export async function readOperations(stack: Stack): Promise<Described[]> {
  const response = await fetch(`${stack.url}/api/openapi.json`);
  const { paths } = (await response.json()) as {
    paths: Record<
      string,
      Record<
        string,
        {
          parameters: { name: string; in: string }[];
          requestBody?: { content: Record<string, unknown> };
        }
      >
    >;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      takesJson: requestBody?.content['application/json'] !== undefined,
      query: parameters.filter(one => one.in === 'query').map(({ name }) => name),
      headers: parameters.filter(one => one.in === 'header').map(({ name }) => name),
    })),
  );
}

/** The path with this in the place of every name. */
export const fillPath = (path: string, word: string) => path.replace(/\{\w+\}/g, () => word);
