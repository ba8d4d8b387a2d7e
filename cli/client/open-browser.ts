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

function starts(program: string, args: string[]): Promise<boolean> {
  return new Promise(resolve => {
    const child = spawn(program, args, { detached: true, stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
