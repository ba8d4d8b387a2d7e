import { CREATED, EXPIRES, pageOf } from './ids.ts';

const user = {
  username: 'ada',
  administrator: false,
  disabled: false,
  created: CREATED,
  storage: { bytes: 73_400_320, limit: 0 },
};
const token = {
  id: '01KB4TC9E1F3G5H7J9K1M3N5P7',
  name: 'notebook',
  scope: 'write',
  created: CREATED,
  expires: null,
  used: EXPIRES,
};

export const ACCOUNT_EXAMPLES = {
  Credentials: { username: 'ada', password: 'a long password', target: '/' },
  Login: { success: true, target: '/' },
  NewToken: { name: 'notebook', scope: 'write' },
  MadeToken: { id: token.id, token: 'the text of the token, shown once' },
  TokenPage: pageOf(token),
  NewLink: { path: '/api/jobs/01KB4TC9E1F3G5H7J9K1M3N5P7/events', seconds: 3_600 },
  MadeLink: {
    url: 'https://windlass.example/api/jobs/01KB4TC9E1F3G5H7J9K1M3N5P7/events?link=wlk_text-of-the-link',
    expires: EXPIRES,
  },
  NewUser: { username: 'ada', password: 'a long password' },
  UserChanges: { password: 'another long password', current: 'a long password' },
  User: user,
  UserDetails: { ...user, soleProjects: 0 },
  UserPage: pageOf(user),
};
