/**
 * When an account's start-up files are read: once for each connection, whose commands have what they export, or by every command,
 * as over plain ssh.
 */
export const STARTUPS = ['once', 'each'] as const;
export type Startup = (typeof STARTUPS)[number];
