import { users } from '../../shared/database/schema.ts';

/** What is selected to know who sent a request: a User. */
export const IDENTITY_COLUMNS = {
  username: users.username,
  administrator: users.administrator,
  version: users.version,
};
