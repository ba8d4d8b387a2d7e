import { type Dropped, readChosen } from '../service/dropped.ts';

/** A file with the name that it has in the folder that was dropped or chosen. */
export interface NamedFile {
  name: string;
  file: File;
}

/** What file managers leave in folders. */
const LITTER = new Set(['.DS_Store', 'Thumbs.db', 'desktop.ini']);
const natural = new Intl.Collator(undefined, { numeric: true });

/** Files that were chosen, of a folder with their paths in it. */
export const chosenFiles = (files: Iterable<File>): NamedFile[] => tidy(readChosen(files));

/** In the order of their names. */
export const tidy = (files: Dropped[]): NamedFile[] =>
  files
    .filter(({ file }) => !LITTER.has(file.name))
    .map(({ path, file }) => ({ name: path, file }))
    .sort((a, b) => natural.compare(a.name, b.name));
