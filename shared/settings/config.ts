import type { z } from 'zod';
import type { Setting } from './setting.ts';
import { SETTINGS } from './settings.ts';

export type Config = { [K in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[K]['schema']> };

/** All problems of the settings, one line each. */
export class ConfigError extends Error {
  readonly problems: string[];
  constructor(problems: string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/**
 * Reads the configuration from the environment: once, where a program begins. Throws a ConfigError that names every bad
 * setting, but never a secret's value.
 */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const problems: string[] = [];
  const config: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries<Setting>(SETTINGS)) {
    const given = environment[name] || setting.default;
    const parsed =
      given === undefined
        ? { success: true as const, data: undefined }
        : setting.schema.safeParse(given);
    if (parsed.success) config[name] = parsed.data;
    else
      problems.push(
        `${name} (${setting.meaning}): ${parsed.error.issues.map(issue => issue.message).join(', ')}`,
      );
  }
  problems.push(...findContradictions(config as Config));
  if (problems.length > 0) throw new ConfigError(problems);
  return config as Config;
}

/** Settings that may change while a process runs: see `windlass keys rotate`. */
const KEYS = ['SECRET_KEY', 'SECRET_KEY_BEFORE', 'SEAL_PUBLIC_KEY', 'SEAL_PRIVATE_KEYS'] as const;

/** Takes the keys of an environment into a configuration that is in use. */
export function renewKeys(config: Config, environment: Record<string, string | undefined>): void {
  const read = readConfig(environment);
  Object.assign(config, Object.fromEntries(KEYS.map(name => [name, read[name]])));
}

function findContradictions(config: Partial<Config>): string[] {
  const { SEAL_PUBLIC_KEY, SEAL_PRIVATE_KEYS } = config;
  const problems: string[] = [];
  if (config.DATABASE_DIRECT_URL && !config.DATABASE_URL)
    problems.push('DATABASE_DIRECT_URL: needs DATABASE_URL too');
  const idOf = (key: string) => key.trim().slice(0, 8);
  const opens = SEAL_PRIVATE_KEYS?.split(',').some(
    key => idOf(key) === idOf(SEAL_PUBLIC_KEY ?? ''),
  );
  if (SEAL_PUBLIC_KEY && opens === false)
    problems.push('SEAL_PRIVATE_KEYS: none of the keys belongs to SEAL_PUBLIC_KEY');
  problems.push(...findOidcContradictions(config));
  const missing = (['S3_ACCESS_KEY', 'S3_SECRET_KEY'] as const).filter(name => !config[name]);
  if (config.S3_ENDPOINT && missing.length > 0)
    problems.push(`S3_ENDPOINT: needs ${missing.join(' and ')} too`);
  if (config.VIDEO_DELIVERY === 'redirect' && !config.S3_ENDPOINT)
    problems.push('VIDEO_DELIVERY: redirect needs S3_ENDPOINT: files have no address of their own');
  return problems;
}

function findOidcContradictions(config: Partial<Config>): string[] {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_AUDIENCE } = config;
  if (OIDC_ISSUER && !OIDC_CLIENT_ID) return ['OIDC_ISSUER: needs OIDC_CLIENT_ID too'];
  if (!OIDC_ISSUER && OIDC_CLIENT_ID) return ['OIDC_CLIENT_ID: needs OIDC_ISSUER too'];
  if (!OIDC_ISSUER && OIDC_AUDIENCE) return ['OIDC_AUDIENCE: needs OIDC_ISSUER too'];
  // OpenID Connect Core 1.0, 2: an ID token's audience is the client; it tells who somebody is and opens nothing.
  if (OIDC_AUDIENCE && OIDC_AUDIENCE === OIDC_CLIENT_ID)
    return ['OIDC_AUDIENCE: must not be OIDC_CLIENT_ID, which is the audience of ID tokens'];
  return [];
}
