import type { Project, Role } from '../service/projects.ts';

/** What people may do in a project. */
export const ROLES = {
  reader: { list: 'readers', name: 'Reader', may: 'sees everything in it' },
  writer: { list: 'writers', name: 'Writer', may: 'changes what is in it' },
  administrator: {
    list: 'administrators',
    name: 'Administrator',
    may: 'says who has a part in it, and may delete it',
  },
} as const satisfies Record<Role, { list: keyof Project['acl']; name: string; may: string }>;

export const ROLE_NAMES = Object.keys(ROLES) as Role[];

export interface Member {
  user: string;
  role: Role;
}

export const membersOf = (acl: Project['acl']): Member[] =>
  ROLE_NAMES.toReversed().flatMap(role =>
    acl[ROLES[role].list].map(({ user }) => ({ user, role })),
  );

/** The lists with a user in the one of a role, or in none. */
export function withRole(
  acl: Project['acl'],
  user: string,
  role: Role | undefined,
): Project['acl'] {
  const without = (list: { user: string }[]) => list.filter(member => member.user !== user);
  const lists = {
    administrators: without(acl.administrators),
    writers: without(acl.writers),
    readers: without(acl.readers),
  };
  if (role) lists[ROLES[role].list].push({ user });
  return lists;
}
