import { unwrap } from '../../../clients/typescript/src/api.ts';
import { printDone, printRecord, printRecords } from '../../output/print-records.ts';
import {
  connect,
  connectByPassword,
  connectTo,
  findService,
  type PasswordOptions,
} from '../connect.ts';
import { readPages } from '../read-pages.ts';
import { readNewPassword, readPassword } from '../secret-input.ts';

interface Options extends PasswordOptions {
  json?: boolean;
}

/** `windlass user list` */
export async function listUsers({ json }: { json?: boolean }): Promise<void> {
  const { api } = await connect();
  const users = await readPages(query => unwrap(api.GET('/api/users', { params: { query } })));
  await printRecords(users, {
    columns: {
      NAME: ({ username }) => username,
      ROLE: ({ administrator }) => (administrator ? 'administrator' : 'user'),
      STATE: ({ disabled }) => (disabled ? 'disabled' : 'active'),
      CREATED: ({ created }) => created,
    },
    json,
  });
}

/** `windlass user add` */
export async function addUser(
  username: string,
  { administrator = false, json, ...options }: Options & { administrator?: boolean },
): Promise<void> {
  const { api } = await connectByPassword(options);
  const password = await readNewPassword(username, options.passwordStdin);
  const body = { username, password, administrator };
  const user = await unwrap(api.POST('/api/users', { body }));
  await printRecord(user, { sentence: `${username} can log in.`, json });
}

/** `windlass user password`: one's own without a name. A reset of another's ends that user's logins. */
export async function changePassword(
  name: string | undefined,
  { passwordStdin, json }: Options,
): Promise<void> {
  const { url, token } = await findService();
  const { username: user } = await unwrap(connectTo({ url, token }).api.GET('/api/users/-'));
  const current = await readPassword(user, passwordStdin);
  const username = name ?? user;
  const password = await readNewPassword(username, passwordStdin);
  const body = username === user ? { password, current } : { password };
  const { api } = connectTo({ url, user, password: current });
  await printDone(
    await unwrap(api.PUT('/api/users/{username}', { params: { path: { username } }, body })),
    { json },
  );
}

/** `windlass user disable` and `enable` */
export async function setDisabled(
  username: string,
  disabled: boolean,
  options: Options,
): Promise<void> {
  const { api } = await connectByPassword(options);
  const params = { path: { username } };
  const body = { disabled };
  await printDone(await unwrap(api.PUT('/api/users/{username}', { params, body })), options);
}

/** `windlass user remove` */
export async function removeUser(username: string, options: Options): Promise<void> {
  const { api } = await connectByPassword(options);
  await unwrap(api.DELETE('/api/users/{username}', { params: { path: { username } } }));
  await printDone({ username, removed: true }, options);
}
