import type { Config } from '../../shared/settings/config.ts';

/** What seals cookies and signs links: the present key and, while it is replaced, the one before. */
export type SecretKeys = Pick<Config, 'SECRET_KEY_BEFORE'> & { SECRET_KEY: string };
