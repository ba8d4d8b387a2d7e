/** Every table; drizzle-kit makes the migrations from it. */
export * from './tables/jobs.ts';
export * from './tables/people.ts';
export * from './tables/projects.ts';
export * from './tables/remote.ts';
export * from './tables/uploads.ts';
