import type { Response } from 'express';
import type { WindlassError } from '../../shared/errors/errors.ts';
import type { AuditRates } from '../identity/audit-rates.ts';
import type { Identity } from '../identity/credential-cache.ts';

/** Who sent a request, and by which credential. */
interface Sender extends Omit<Identity, 'by'> {
  by: Identity['by'] | 'cookie' | 'link';
  /** What the login's cookie holds. */
  loginSecret?: string;
  /** When the login ends unless it is used. */
  loginEnds?: Date;
}

declare global {
  namespace Express {
    /** `res.locals`: what the parts that handle a request tell each other. */
    interface Locals extends Partial<Sender> {
      /** Set before anything else. */
      requestId: string;
      /** Shared by all requests of this process; set before anything else. */
      auditRates: AuditRates;
      /** The link in the address; empty where there were several. See middleware/take-link.ts. */
      link?: string;
      /** Whether a page of another origin sent the request. */
      isForeignPage?: boolean;
      /** CredentialCache's generation before the sender was looked up. */
      identifiedIn?: number;
      /** performance.now() before that look-up. */
      identifiedAt?: number;
      /** Whether the body had not arrived when the sender was identified. */
      isBodyLate?: boolean;
      /** Whether what is still to come of the body is dropped. */
      isBodyRefused?: boolean;
      /** Gives back the memory reserved for a large JSON body; at the latest the end of the response does. */
      releaseBody?(): void;
      /** Ends the watch of the body's pace. */
      unwatchBody?(): void;
      /** What the request was answered with, where that is a problem. */
      problem?: WindlassError;
      /** Whether the handler has logged the request itself. */
      logged?: boolean;
    }
  }
}

/** Records who sent the request. Nothing stays of an earlier identification. */
export function setSender(
  res: Response,
  { user, by, scope, token, ends, loginSecret, loginEnds }: Sender,
): void {
  Object.assign(res.locals, { user, by, scope, token, ends, loginSecret, loginEnds });
}
