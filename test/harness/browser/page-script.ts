import { rolldown } from 'rolldown';

/** What the module exports, with all that it imports, as one script for a page, where `name` is a global. */
export async function bundleForPage(module: string, name: string): Promise<string> {
  const bundle = await rolldown({ input: module, platform: 'browser', logLevel: 'silent' });
  try {
    const { output } = await bundle.generate({ format: 'iife', name, codeSplitting: false });
    return output[0].code;
  } finally {
    await bundle.close();
  }
}
