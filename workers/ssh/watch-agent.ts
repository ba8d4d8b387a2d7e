import type { AgentClient } from '../host-agent/client.ts';

/** An agent that sends nothing for so long, not even a pong, is dead, and its connection is closed. */
const PING_MS = 30_000;

/** Closes the connection if the agent hangs, for instance on a home that became unreachable: sshd still answers then. */
export function watchAgent(client: AgentClient, close: () => void): void {
  let isPinging = false;
  let checkedAt = performance.now();
  const timer = setInterval(() => {
    if (isPinging && client.heardAt < checkedAt) return close();
    checkedAt = performance.now();
    if (isPinging) return;
    isPinging = true;
    const onPong = () => {
      isPinging = false;
    };
    client.ping().then(onPong, () => {});
  }, PING_MS);
  void client.closed.then(() => {
    clearInterval(timer);
    close();
  });
}
