import type { Stack } from '../../servers/stack.ts';
import { expect } from '../console.ts';
import type { Demo } from '../demo.ts';

/** Bull Board answers administrators alone; where it is and how to log in. */
export async function showBoard({ client, out }: Demo, service: Stack): Promise<void> {
  const path = '/admin/queues';
  const stranger = await fetch(`${service.url}${path}`);
  await stranger.arrayBuffer();
  expect(stranger.status === 401, `without a password it answers ${stranger.status}, not 401`);
  const { type } = await client.getBytes(path);
  expect(type?.startsWith('text/html'), `it answers ${type}`);
  out.note(`${service.url}${path}`);
  out.note(`log in as ${service.username} with the password ${service.password}`);
}
