import type { WindlassError } from '../../shared/errors/errors.ts';
import { invalidInput } from '../http/validate.ts';

/**
 * The SHA-256 in Content-Digest (RFC 9530), if any; other algorithms are not verified. The field is a Dictionary of
 * Byte Sequences, in which the last of equal keys counts (RFC 8941, 3.2 and 3.3.5). A parser of all structured fields
 * would be far longer.
 */
export function readContentDigest(header: string | undefined): Buffer | undefined {
  if (header === undefined) return undefined;
  let digest: Buffer | undefined;
  for (const member of header.split(',')) {
    const match = /^[ \t]*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/]*={0,2}):[ \t]*$/.exec(member);
    if (!match) throw malformed('must be a list such as sha-256=:BASE64:');
    const [, algorithm, text = ''] = match;
    if (algorithm !== 'sha-256') continue;
    digest = Buffer.from(text, 'base64');
    if (digest.length !== 32) throw malformed('sha-256 must be 32 bytes in base64');
  }
  return digest;
}

function malformed(problem: string): WindlassError {
  return invalidInput([{ field: 'Content-Digest', problem }], 'See RFC 9530, or omit the header.');
}
