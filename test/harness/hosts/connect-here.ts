import { destinationDigest } from '../../../shared/ssh/destination.ts';
import { connect, type Target } from '../../../workers/ssh/connect.ts';

/** connect() with a credential that was sealed for these hops. */
export const connectHere = (target: Omit<Target, 'destination'>, signal: AbortSignal) =>
  connect({ ...target, destination: destinationDigest(target.hops) }, signal);
