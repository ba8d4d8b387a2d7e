import { unwrap } from '../../../clients/typescript/src/api.ts';
import { CommandError } from '../../command-error.ts';
import { printDone, printRecord, printRecords } from '../../output/print-records.ts';
import { readNewPassword, readPassword } from '../../secret-input.ts';
import { ask } from '../../terminal.ts';
import {
  connect,
  connectByPassword,
  connectTo,
  findService,
  type PasswordOptions,
} from '../connect.ts';
import { readPages } from '../read-pages.ts';

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

interface RemoveOptions extends Options {
  deleteProjects?: boolean;
  giveProjectsTo?: string;
}

/** `windlass user remove`: asks, where it would delete projects and nothing is said of them. */
export async function removeUser(username: string, options: RemoveOptions): Promise<void> {
  const { deleteProjects = false, giveProjectsTo: projectsTo } = options;
  const { api } = await connectByPassword(options);
  const path = { username };
  if (!deleteProjects) {
    const user = await unwrap(api.GET('/api/users/{username}', { params: { path } }));
    const { soleProjects }: { soleProjects?: number } = user;
    if (soleProjects === undefined)
      throw new CommandError(
        `This service is of an older release: it deletes the projects that ${username} alone holds.`,
        { hint: 'Give --delete-projects if that is wanted.' },
      );
    if (soleProjects > 0 && projectsTo === undefined) await confirmDeletion(user);
  }
  const params = { path, query: { projectsTo } };
  await unwrap(api.DELETE('/api/users/{username}', { params }));
  await printDone({ username, removed: true }, options);
}

async function confirmDeletion({
  username,
  soleProjects: count,
}: {
  username: string;
  soleProjects: number;
}): Promise<void> {
  const told =
    count === 1
      ? `Nobody else may change 1 project of ${username}. It is deleted with all data, or left to its readers if it has any`
      : `Nobody else may change ${count} projects of ${username}. Those without readers are deleted with all data, the others are left to them`;
  const hint = 'Give --delete-projects, or --give-projects-to NAME.';
  const instead = `${told}. ${hint}`;
  const answer = await ask(`${told}. Remove ${username}? (y/N) `, { echo: true, instead });
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new CommandError(`${username} was not removed.`, { hint });
}
