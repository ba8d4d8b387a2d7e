/** Every table; drizzle-kit makes the migrations from it. */

export * from './tables/accounts.ts';
export * from './tables/audit.ts';
export * from './tables/jobs.ts';
export * from './tables/projects.ts';
export * from './tables/remote.ts';
export * from './tables/statistics.ts';
export * from './tables/storage.ts';
export * from './tables/uploads.ts';
export * from './tables/webhooks.ts';
