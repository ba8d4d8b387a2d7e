/**
 * Keys of PostgreSQL's advisory locks. No version of Windlass changes one: programs of two releases, and of several machines,
 * meet at them.
 */
export const ADVISORY_LOCKS = {
  migration: 7_493_221,
  dispatcher: 7_493_222,
  /** With the number of a queue: whoever gives slots of it. */
  slots: 7_493_223,
  retention: 7_493_224,
  /** Whoever removes entries of projects' caches. */
  caches: 7_493_235,
  auditChain: 7_493_227,
  roles: 7_493_228,
  keyRotation: 7_493_229,
  /** Held by a backup, shared for a moment by who deletes objects. */
  deletions: 7_493_230,
  /** Whoever counts what users store; with the hash of a name, whoever adds to it for that user. */
  userStorage: 7_493_231,
  /** Whoever changes which host is reached through which. */
  jumps: 7_493_236,
  /** With the hash of a host, an account and a path: whoever changes that file if it has the expected state. */
  files: 7_493_237,
} as const;
