import { z } from 'zod';
import type { Setting } from './setting.ts';
import { issuerUrl, longSecret, sealKey, sealKeys, whole } from './values.ts';

const claimRule = z.string().regex(/^[^=]+=.+$/, 'must be claim=value');

/** Who may log in, and the keys that secrets are kept under. */
export const IDENTITY = {
  ADMIN_USERNAME: {
    schema: z
      .string()
      .regex(
        /^\w[\w.@-]{0,63}$/,
        'must be 1 to 64 letters, digits, . _ @ - and begin with a letter, a digit or _',
      ),
    default: 'admin',
    meaning: 'name of the first administrator',
  },
  ADMIN_PASSWORD: {
    schema: z.string().min(8, 'must have at least 8 characters').optional(),
    meaning:
      "the first administrator's password (default: generated at the first start and printed once)",
  },
  SECRET_KEY: {
    schema: longSecret.optional(),
    meaning: 'key of the HMACs that the API stores (embedded: generated at the first start)',
  },
  SECRET_KEY_BEFORE: {
    schema: longSecret.optional(),
    meaning:
      'the SECRET_KEY before the present one, by which repeated requests are still recognised (embedded: kept by `windlass keys rotate`)',
  },
  SEAL_PUBLIC_KEY: {
    schema: sealKey.optional(),
    meaning: 'key that encrypts remote credentials (embedded: generated at the first start)',
  },
  SEAL_PRIVATE_KEYS: {
    schema: sealKeys.optional(),
    meaning:
      'keys that decrypt them, separated by commas, the current one first; for remote and video workers only',
  },
  LOGIN_TIMEOUT: {
    schema: whole(1, 31_536_000),
    default: '43200',
    meaning: 'seconds after which an unused cookie login ends',
  },
  OIDC_ISSUER: {
    schema: issuerUrl.optional(),
    meaning:
      'identity provider (OpenID Connect) whose users may log in, as its discovery document names it (default: none)',
  },
  OIDC_CLIENT_ID: {
    schema: z.string().optional(),
    meaning:
      'how this service is registered there, with the callback PUBLIC_URL/api/login/oidc/callback',
  },
  OIDC_CLIENT_SECRET: {
    schema: z.string().optional(),
    meaning: 'its secret there; without one it is a public client, which PKCE protects',
  },
  OIDC_SCOPES: {
    schema: z.string().refine(value => value.split(' ').includes('openid'), 'must hold openid'),
    default: 'openid profile',
    meaning: 'what the provider is asked for, separated by spaces',
  },
  OIDC_USERNAME_CLAIM: {
    schema: z.string(),
    default: 'preferred_username',
    meaning: 'claim that names a user at the first login',
  },
  OIDC_USERS: {
    schema: claimRule.optional(),
    meaning:
      'claim=value: only who has it may log in there, and use an access token (default: everybody whom the provider knows)',
  },
  OIDC_ADMINISTRATORS: {
    schema: claimRule.optional(),
    meaning:
      'claim=value: who has it at a login is a server administrator until the next one, who lacks it is none (default: administrators decide)',
  },
  OIDC_AUDIENCE: {
    schema: z.string().optional(),
    meaning:
      'audience of access tokens (JWT) of that issuer that are accepted as Bearer (default: none are)',
  },
} as const satisfies Record<string, Setting>;
