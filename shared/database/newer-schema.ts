/** What an older program says of a schema that has so many migrations more than it knows, and does: see decision 29. */
export const describeNewerSchema = (unknown: number): string =>
  `The schema of the database is newer than this release by ${unknown} ${unknown === 1 ? 'migration' : 'migrations'}. ` +
  'A program of the release just before works on it as before; one that is older may fail.';
