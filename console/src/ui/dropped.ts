export interface Dropped {
  /** Below the folder that was dropped; its name alone where it is a file. */
  path: string;
  file: File;
}

/** Files that were chosen by a button. */
export const readChosen = (files: Iterable<File>): Dropped[] =>
  [...files].map(file => ({ path: file.webkitRelativePath || file.name, file }));

/** Files that were dropped, and those in folders that were. */
export async function readDropped({ items }: DataTransfer): Promise<Dropped[]> {
  // Both are asked for now: after the event there is nothing any more.
  const found = [...items]
    .filter(({ kind }) => kind === 'file')
    .map(item => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const read = found.map(async ({ entry, file }): Promise<Dropped[]> => {
    if (entry) return readEntry(entry, '');
    return file ? [{ path: file.name, file }] : [];
  });
  return (await Promise.all(read)).flat();
}

async function readEntry(entry: FileSystemEntry, above: string): Promise<Dropped[]> {
  const path = `${above}${entry.name}`;
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const dropped: Dropped[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return dropped;
    for (const one of some) dropped.push(...(await readEntry(one, `${path}/`)));
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
