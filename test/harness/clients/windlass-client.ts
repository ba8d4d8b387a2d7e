import { Windlass } from '../../../clients/typescript/src/index.ts';
import { startTcpProxy, type TcpProxy } from '../servers/tcp-proxy.ts';
import type { Stack } from '../stacks/stack.ts';
import { useStarted } from '../stacks/use-stack.ts';

/** All that an iterable gives. */
export async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** A proxy on the way from clients to the service. */
export const useLink = (stack: Stack): TcpProxy =>
  useStarted(async () => {
    const { hostname, port } = new URL(stack.url);
    return startTcpProxy({ host: hostname, port: Number(port) });
  });

/** A client of the stack's administrator; `port` is that of a link. */
export function connectWindlass(
  { url, username: user, password }: Stack,
  port?: number,
  options?: { fetch: typeof fetch },
): Windlass {
  return new Windlass({
    url: port ? `http://127.0.0.1:${port}` : url,
    user,
    password,
    ...options,
  });
}
