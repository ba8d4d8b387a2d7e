export interface Dropped {
  /** Below the folder that was dropped; its name alone where it is a file. */
  path: string;
  file: File;
}

/** Files that were chosen by a button. */
export const readChosen = (files: Iterable<File>): Dropped[] =>
  [...files].map(file => ({ path: file.webkitRelativePath || file.name, file }));

/** What was dropped: its files, those in folders too, and what of it could not be read. */
export interface Drop {
  files: Dropped[];
  unread: string[];
}

/** To be called while the event is handled: after it there is nothing any more. */
export async function readDropped({ items }: DataTransfer): Promise<Drop> {
  const found = [...items]
    .filter(({ kind }) => kind === 'file')
    .map(item => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const drop: Drop = { files: [], unread: [] };
  for (const { entry, file } of found) {
    if (entry) await readEntry(entry, '', drop);
    else if (file) drop.files.push({ path: file.name, file });
  }
  return drop;
}

/** One that may not be read, or is gone since, does not keep the others back. */
async function readEntry(entry: FileSystemEntry, above: string, drop: Drop): Promise<void> {
  const path = `${above}${entry.name}`;
  try {
    if (isFile(entry)) {
      const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
      drop.files.push({ path, file });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
        reader.readEntries(resolve, reject),
      );
      if (some.length === 0) return;
      for (const one of some) await readEntry(one, `${path}/`, drop);
    }
  } catch {
    drop.unread.push(path);
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
