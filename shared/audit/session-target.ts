import { sessions } from '../database/tables/remote.ts';

/** What names a session in the audit, to select or return. */
export const NAMED_SESSION = {
  sid: sessions.sid,
  username: sessions.username,
  hostname: sessions.hostname,
};
export interface NamedSession {
  sid: string;
  username: string;
  hostname: string;
}

/** `SID ACCOUNT@HOST`: who was where can be told after the session's row is removed. */
export const sessionTarget = ({ sid, username, hostname }: NamedSession) =>
  `${sid} ${username}@${hostname}`;
