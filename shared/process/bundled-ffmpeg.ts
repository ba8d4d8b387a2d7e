import { access, chmod, constants, stat } from 'node:fs/promises';

/** The static binary of `@ffmpeg-installer/ffmpeg`, if there is one for this platform. */
export async function findBundledFfmpeg(): Promise<string | undefined> {
  try {
    const { path } = (await import('@ffmpeg-installer/ffmpeg')).default;
    await makeExecutable(path);
    return path;
  } catch {
    // The package throws a string on platforms without a binary.
    return undefined;
  }
}

/**
 * Install scripts make the file executable for its owner alone, and they may be switched off; decoders are another user. Throws
 * where even this process may not run it.
 */
export async function makeExecutable(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o111) === 0o111) return;
  await chmod(path, 0o755).catch(() => access(path, constants.X_OK));
}
