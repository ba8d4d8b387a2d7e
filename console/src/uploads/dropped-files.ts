/** A file with the name that it has in the folder that was dropped or chosen. */
export interface NamedFile {
  name: string;
  file: File;
}

/** What file managers leave in folders. */
const LITTER = new Set(['.DS_Store', 'Thumbs.db', 'desktop.ini']);
const natural = new Intl.Collator(undefined, { numeric: true });

/** Files that were chosen, of a folder with their paths in it. */
export const chosenFiles = (files: Iterable<File>): NamedFile[] =>
  tidy([...files].map(file => ({ file, name: file.webkitRelativePath || file.name })));

/** Files that were dropped, with those in folders among them. To be called while the event is handled. */
export async function droppedFiles(data: DataTransfer): Promise<NamedFile[]> {
  const entries = [...data.items].map(item => item.webkitGetAsEntry());
  const plain = [...data.files];
  const found = await Promise.all(
    entries.map(async (entry, n) => {
      const file = plain[n];
      if (entry) return readEntry(entry, '');
      return file ? [{ file, name: file.name }] : [];
    }),
  );
  return tidy(found.flat());
}

const tidy = (files: NamedFile[]): NamedFile[] =>
  files
    .filter(({ file }) => !LITTER.has(file.name))
    .sort((a, b) => natural.compare(a.name, b.name));

async function readEntry(entry: FileSystemEntry, folder: string): Promise<NamedFile[]> {
  const name = `${folder}${entry.name}`;
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [{ file, name }];
  }
  if (!isFolder(entry)) return [];
  const reader = entry.createReader();
  const found: NamedFile[] = [];
  for (;;) {
    // A folder is told in pieces, the last of which is empty.
    const piece = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (piece.length === 0) return found;
    for (const child of piece) found.push(...(await readEntry(child, `${name}/`)));
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
