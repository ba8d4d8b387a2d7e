import { once } from 'node:events';
import { isSecretSetting } from './redact.ts';

/**
 * Secret settings reach a process of the supervisor over its channel, a descriptor that only these two have: /proc
 * shows environments and arguments. A process that something else starts has all of them in its environment.
 */
export type Secrets = Record<string, string>;
export type Environment = Record<string, string | undefined>;

/** In the environment of a process that gets its secrets over the channel. */
const MARK = 'WINDLASS_SETTINGS_BY';
const BY_CHANNEL = 'channel';

/** Parts an environment into what may be seen and what may not. */
export function partSecrets(environment: Environment): { open: Environment; secrets: Secrets } {
  const open: Environment = { [MARK]: BY_CHANNEL };
  const secrets: Secrets = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && isHanded(name, value)) secrets[name] = value;
    else open[name] = value;
  }
  return { open, secrets };
}

/** The public key changes together with the private ones. */
const isHanded = (name: string, value: string) =>
  name === 'SEAL_PUBLIC_KEY' || isSecretSetting(name, value);

interface SecretsMessage {
  type: 'secrets';
  secrets: Secrets;
}

export const secretsMessage = (secrets: Secrets): SecretsMessage => ({ type: 'secrets', secrets });

interface SecretsOfProcess {
  /** All settings of the process. */
  environment: Environment;
  /** Calls it for the set that is present by then, and for each later one. */
  onChange(take: (secrets: Secrets) => void): void;
}

/** Waits for the supervisor's first message, where a supervisor hands secrets over. */
export async function receiveSecrets(environment: Environment): Promise<SecretsOfProcess> {
  if (environment[MARK] !== BY_CHANNEL || !process.channel)
    return { environment, onChange: () => {} };
  let latest: Secrets = {};
  let take: ((secrets: Secrets) => void) | undefined;
  // Those that came together are emitted together: it must listen before the first is awaited.
  process.on('message', (message: unknown) => {
    if (!isSecretsMessage(message)) return;
    latest = message.secrets;
    take?.(latest);
  });
  // The channel alone keeps the process alive while it waits.
  process.channel.ref();
  const [first] = await once(process, 'message');
  process.channel.unref();
  if (!isSecretsMessage(first)) throw new Error('the supervisor sent no secrets');
  return {
    environment: { ...environment, ...latest },
    onChange(listener) {
      take = listener;
      // Those that came while the process was starting.
      listener(latest);
    },
  };
}

function isSecretsMessage(message: unknown): message is SecretsMessage {
  return (
    typeof message === 'object' &&
    message !== null &&
    'type' in message &&
    message.type === 'secrets' &&
    'secrets' in message &&
    typeof message.secrets === 'object'
  );
}
