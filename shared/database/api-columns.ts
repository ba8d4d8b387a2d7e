import { getTableColumns } from 'drizzle-orm';
import {
  type SessionRow,
  sessions,
  type UserRow,
  users,
  type WebhookRow,
  webhooks,
} from './schema.ts';

/** What the API's role may read of a session, and so selects: nothing that it sealed for workers. */
const {
  sealed: _sealed,
  sealedEnv: _sealedEnv,
  answers: _answers,
  ...sessionColumns
} = getTableColumns(sessions);
export const SESSION_COLUMNS = sessionColumns;
export type SessionRecord = Omit<SessionRow, 'sealed' | 'sealedEnv' | 'answers'>;

/** What it may read of a user: all but the password's hash, which password_hash_of() gives for one name. */
const { passwordHash: _passwordHash, ...userColumns } = getTableColumns(users);
export const USER_COLUMNS = userColumns;
export type UserRecord = Omit<UserRow, 'passwordHash'>;

/** What it may read of a webhook: all but the key of the signatures. */
const { sealed: _key, ...webhookColumns } = getTableColumns(webhooks);
export const WEBHOOK_COLUMNS = webhookColumns;
export type WebhookRecord = Omit<WebhookRow, 'sealed'>;
