import { existsSync, type FSWatcher, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';

/** Coalesces events: an editor saves in several steps, and git changes many files. */
const SETTLE_MS = 50;
/** Tests, and temporary files of editors. */
const IGNORED = /\.test\.ts$|^\.|~$|^4913$/;

/**
 * Calls back when files below these folders were saved, added or removed. Watches each folder separately, because the
 * recursive mode of Node 20 misses files after an editor has replaced them.
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
    if (name !== null && IGNORED.test(name)) return;
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
