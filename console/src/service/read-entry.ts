type Refuse = (reason: unknown) => void;

/** What was dropped, as browsers give it (File and Directory Entries API). */
export type Entry<F> =
  | { name: string; isFile: true; file: (resolve: (file: F) => void, refuse: Refuse) => void }
  | { name: string; isFile: false; createReader: () => EntryReader<F> };

interface EntryReader<F> {
  /** Some at a time; none at the end. */
  readEntries: (resolve: (some: Entry<F>[]) => void, refuse: Refuse) => void;
}

export interface Read<F> {
  files: { path: string; file: F }[];
  /** Paths of what the browser may not read, or what is gone. */
  unreadable: string[];
}

/** Adds the files of an entry. What cannot be read leaves the others where they are. */
export async function readEntry<F>(entry: Entry<F>, into: Read<F>, above = ''): Promise<void> {
  const path = `${above}${entry.name}`;
  try {
    if (entry.isFile) {
      const file = await new Promise<F>((resolve, refuse) => entry.file(resolve, refuse));
      into.files.push({ path, file });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise<Entry<F>[]>((resolve, refuse) =>
        reader.readEntries(resolve, refuse),
      );
      if (some.length === 0) return;
      for (const one of some) await readEntry(one, into, `${path}/`);
    }
  } catch {
    into.unreadable.push(path);
  }
}
