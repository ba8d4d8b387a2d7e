import { hash, verify } from '@node-rs/argon2';

/** argon2id with OWASP's first recommendation: 19 MiB, two passes, one lane. */
const OPTIONS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** RFC 8265, 4.2: keyboards compose the same characters differently. */
const compose = (password: string) => password.normalize('NFC');

export function hashPassword(password: string): Promise<string> {
  return hash(compose(password), OPTIONS);
}

/** Earlier releases hashed a password as it was typed. */
export async function verifyPassword(passwordHash: string, password: string): Promise<boolean> {
  const composed = compose(password);
  if (await verify(passwordHash, composed)) return true;
  return composed !== password && verify(passwordHash, password);
}
