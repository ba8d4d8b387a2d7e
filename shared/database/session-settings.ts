/** The server ends a statement that takes longer. */
const STATEMENT_TIMEOUT = '10s';

/** Settings of each connection of the pool. */
export const SESSION_SETTINGS: Record<string, string> = {
  statement_timeout: STATEMENT_TIMEOUT,
  // A process that hangs inside a transaction must not keep its locks.
  idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
  // Transactions lock what they decide by, and see what was committed before they got the lock. An operator may have set
  // another level for the database, in which they fail instead (40001).
  default_transaction_isolation: 'read committed',
  // The server keeps a statement's plan as long as the connection lasts. One made while a table was empty reads the
  // whole table, even when it has a million rows.
  enable_seqscan: 'off',
};
