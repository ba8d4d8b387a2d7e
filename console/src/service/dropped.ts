import { type Entry, type Read, readEntry } from './read-entry.ts';

export interface Dropped {
  /** Below the folder that was dropped; its name alone where it is a file. */
  path: string;
  file: File;
}

export type Drop = Read<File>;

/** Files that were chosen by a button. */
export const readChosen = (files: Iterable<File>): Dropped[] =>
  [...files].map(file => ({ path: file.webkitRelativePath || file.name, file }));

/** Files that were dropped, and those in folders that were. */
export async function readDropped({ items }: DataTransfer): Promise<Drop> {
  // Both are asked for now: after the event there is nothing any more.
  const found = [...items]
    .filter(({ kind }) => kind === 'file')
    .map(item => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const drop: Drop = { files: [], unreadable: [] };
  for (const { entry, file } of found) {
    if (entry) await readEntry(entry as unknown as Entry<File>, drop);
    else if (file) drop.files.push({ path: file.name, file });
  }
  return drop;
}
