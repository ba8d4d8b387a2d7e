import { spawn } from 'node:child_process';

/** Opens the address in the person's browser, and does not wait for it. False where there is none. */
export async function openBrowser(url: string, environment = process.env): Promise<boolean> {
  for (const [program, ...args] of listOpeners(environment))
    if (program && (await starts(program, [...args, url]))) return true;
  return false;
}

/** Programs that open an address, with what precedes it. BROWSER names the person's own choice, as in other tools. */
function listOpeners({ BROWSER, DISPLAY, WAYLAND_DISPLAY }: NodeJS.ProcessEnv): string[][] {
  const chosen = BROWSER ? [[BROWSER]] : [];
  if (process.platform === 'darwin') return [...chosen, ['open']];
  if (process.platform === 'win32') return [...chosen, ['rundll32', 'url.dll,FileProtocolHandler']];
  // Without a screen xdg-open takes a browser of the terminal, if there is one, or fails unseen.
  return DISPLAY || WAYLAND_DISPLAY ? [...chosen, ['xdg-open']] : chosen;
}

/** A browser that fails does so at once; one that runs after that is there. */
const FAILS_WITHIN_MS = 1_000;

function starts(program: string, args: string[]): Promise<boolean> {
  return new Promise(resolve => {
    const child = spawn(program, args, { detached: true, stdio: 'ignore' });
    const timer = setTimeout(() => {
      child.unref();
      resolve(true);
    }, FAILS_WITHIN_MS);
    const end = (isThere: boolean) => {
      clearTimeout(timer);
      resolve(isThere);
    };
    child.once('error', () => end(false));
    child.once('exit', code => end(code === 0));
  });
}
