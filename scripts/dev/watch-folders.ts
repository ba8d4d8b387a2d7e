import { existsSync, type FSWatcher, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';

/** An editor saves a file in several steps, and a checkout of another branch many files. */
const SETTLE_MS = 50;
/** Tests are no part of a program, and editors keep files of their own beside the sources. */
const FOREIGN = /\.test\.ts$|^\.|~$|^4913$/;

/**
 * Calls back once after files below these folders were saved, added or removed. Watches each folder by itself, since
 * recursive watching loses files in Node 20 once an editor has replaced them.
 */
export function watchFolders(folders: string[], onChange: () => void): { close(): void } {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;

  const watchAll = () => {
    const present = new Set(folders.flatMap(listFolders));
    for (const [path, watcher] of watchers) {
      if (present.has(path)) continue;
      watcher.close();
      watchers.delete(path);
    }
    for (const path of present)
      if (!watchers.has(path))
        watchers.set(
          path,
          watch(path, onEvent).on('error', () => {}),
        );
  };
  const onEvent = (_event: string, name: string | null) => {
    if (name !== null && FOREIGN.test(name)) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      watchAll();
      onChange();
    }, SETTLE_MS);
  };

  watchAll();
  return {
    close() {
      clearTimeout(timer);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

function listFolders(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const below = entries.filter(entry => entry.isDirectory());
  return [folder, ...below.map(entry => join(entry.parentPath, entry.name))];
}
