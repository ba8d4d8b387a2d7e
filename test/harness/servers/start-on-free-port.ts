import { findFreePort } from '../../../servers/free-port.ts';

/** What `start` gives with a free port, or with another one where somebody took that first; and the port. */
export async function startOnFreePort<T>(
  start: (port: number) => Promise<T>,
): Promise<{ port: number; started: T }> {
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort();
    try {
      return { port, started: await start(port) };
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}
