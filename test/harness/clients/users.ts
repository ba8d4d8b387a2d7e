import { Client } from '../../../servers/api-client.ts';
import { newId } from '../../../shared/ids.ts';

/** The password of every user that addUser() makes. */
export const PASSWORD = 'correct horse';

/** A new user of the service, under a name that nobody had; `login` is the body of POST /login. */
export async function addUser(admin: Client) {
  const username = `user-${newId()}`;
  const login = { username, password: PASSWORD };
  await admin.post('/api/users', login);
  return { username, login, client: new Client(admin.base, username, PASSWORD) };
}
