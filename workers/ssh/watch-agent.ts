import type { AgentClient } from '../host-agent/client.ts';

/** An agent that sends nothing for so long, not even the answer to a ping, is dead; its connection is closed. */
const PING_MS = 30_000;

/** Closes the connection of an agent that hangs, say on a home directory that went away: sshd lives on then. */
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
