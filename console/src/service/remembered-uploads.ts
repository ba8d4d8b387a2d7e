/** What this browser knows of a file that it was sending. */
export interface RememberedFile {
  aid: string;
  size: number;
  /** ms since 1970. */
  modified: number;
}

const KEY = 'windlass.uploads';
/** The service gives up what rests for a day. */
const DAYS_MS = 2 * 86_400_000;

interface Remembered {
  at: number;
  files: RememberedFile[];
}

function readAll(): Record<string, Remembered> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, Remembered>;
  } catch {
    return {};
  }
}

function writeAll(all: Record<string, Remembered>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // It is resumed without: what is missing is the size that there will be.
  }
}

/** Keeps what is needed to know the files of an upload again after a reload. */
export function rememberUpload(uid: string, files: File[], aids: string[]): void {
  const kept = Object.entries(readAll()).filter(([, { at }]) => at > Date.now() - DAYS_MS);
  const known = files.map((file, n) => ({
    aid: aids[n] ?? file.name,
    size: file.size,
    modified: file.lastModified,
  }));
  writeAll({ ...Object.fromEntries(kept), [uid]: { at: Date.now(), files: known } });
}

export const rememberedFiles = (uid: string): RememberedFile[] | undefined => readAll()[uid]?.files;

export function forgetUploads(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There is none.
  }
}

export function forgetUpload(uid: string): void {
  const { [uid]: _, ...others } = readAll();
  writeAll(others);
}
