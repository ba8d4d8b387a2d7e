import { unwrap } from '../../../clients/typescript/src/api.ts';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { CommandError } from '../../command-error.ts';
import { printRecord } from '../../output/print-records.ts';
import { connectTo, findService } from '../connect.ts';
import { openBrowser } from '../open-browser.ts';

/** `windlass open`: the web console in a browser. The address is printed, for where there is no browser. */
export async function openConsole(
  id: string | undefined,
  { json }: { json?: boolean },
): Promise<void> {
  const service = await findService();
  const page = id === undefined ? 'run' : await findPage(connectTo(service), id);
  const url = `${service.url}/console/${page}`;
  const opened = await openBrowser(url);
  await printRecord({ url, opened }, { sentence: url, json });
}

/** Where the console shows what has this id. */
async function findPage({ api }: Windlass, id: string): Promise<string> {
  const path = encodeURIComponent(id);
  const ofJob = () => unwrap(api.GET('/api/jobs/{id}', { params: { path: { id } } }));
  if (await isThere(ofJob)) return `jobs/${path}`;
  const ofProject = () => unwrap(api.GET('/api/projects/{pid}', { params: { path: { pid: id } } }));
  if (await isThere(ofProject)) return `projects/${path}`;
  throw new CommandError(`There is no job and no project ${id} of yours.`, {
    hint: 'See windlass jobs and windlass project list.',
  });
}

async function isThere(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (error) {
    if (error instanceof WindlassError && error.status === 404) return false;
    throw error;
  }
}
