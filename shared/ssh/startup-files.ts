/**
 * When an account's start-up files are read: once for each connection, whose commands have what they export, or by every command,
 * as over plain ssh.
 */
export const STARTUP_FILE_MODES = ['once', 'each'] as const;
export type Startup = (typeof STARTUP_FILE_MODES)[number];
