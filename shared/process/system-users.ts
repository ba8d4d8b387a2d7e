import { readFileSync } from 'node:fs';

/** An account of this machine. */
export interface SystemUser {
  name: string;
  uid: number;
  gid: number;
}

/** The accounts in /etc/passwd; none where there is no such file. */
export function readSystemUsers(): SystemUser[] {
  let text: string;
  try {
    text = readFileSync('/etc/passwd', 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return text.split('\n').flatMap(line => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/** Whom the embedded Postgres runs as, where this process is root and its data belongs to nobody yet. */
const POSTGRES = ['postgres', 'nobody'];
/** Whom programs run as that read files of others. */
const DECODER = ['windlass-decoder', 'nobody', 'daemon'];

/** The first of these accounts that exists and is not root. */
function findUser(names: readonly string[], users: SystemUser[]): SystemUser | undefined {
  for (const name of names) {
    const user = users.find(entry => entry.name === name && entry.uid !== 0);
    if (user) return user;
  }
  return undefined;
}

export const findPostgresUser = (users = readSystemUsers()) => findUser(POSTGRES, users);

/** Never the embedded Postgres's account: a program can inspect others of its user. */
export function findDecoderUser(): SystemUser | undefined {
  const users = readSystemUsers();
  const postgres = findPostgresUser(users);
  const others = users.filter(({ uid }) => uid !== postgres?.uid);
  return findUser(DECODER, others);
}
