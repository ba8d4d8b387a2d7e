import type { Tx } from '../../shared/database/connect.ts';
import { isId } from '../../shared/ids.ts';
import {
  lockUpload,
  selectUpload,
  type UploadFound,
  unknownUpload,
} from '../../shared/uploads/uploads.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter } from '../http/resource.ts';
import { currentUser } from '../identity/current-user.ts';

/** An upload of this owner; to other users it does not exist. */
export interface UploadKey {
  uid: string;
  owner: string;
}

export const readUploadKey = ({ req, res }: Exchange): UploadKey => ({
  uid: pathParameter(req, 'uid'),
  owner: currentUser(res).username,
});

/** The user's upload, for reading. Throws `not_found`, also for another user's upload and when its model is gone. */
export async function findUpload(db: Tx, { uid, owner }: UploadKey): Promise<UploadFound> {
  const [found] = isId(uid) ? await selectUpload(db, uid) : [];
  if (found?.upload.owner !== owner) throw unknownUpload();
  return found;
}

/** The user's upload, for writing it or below it: locked until the caller's transaction commits. */
export async function lockOwnUpload(tx: Tx, key: UploadKey): Promise<UploadFound> {
  await findUpload(tx, key);
  return lockUpload(tx, key.uid);
}
