import type { Stack } from '../../servers/stack.ts';
import { expect } from '../console.ts';
import type { DemoContext } from '../context.ts';

/** Checks that only administrators can open Bull Board, and prints how. */
export async function showBullBoard({ client, out }: DemoContext, service: Stack): Promise<void> {
  const path = '/admin/queues';
  const anonymous = await fetch(`${service.url}${path}`);
  await anonymous.arrayBuffer();
  expect(anonymous.status === 401, `without a password it answers ${anonymous.status}, not 401`);
  const { type } = await client.getBytes(path);
  expect(type?.startsWith('text/html'), `it answers ${type}`);
  out.note(`${service.url}${path}`);
  out.note(`log in as ${service.username} with the password ${service.password}`);
}
