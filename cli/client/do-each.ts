import { describe } from '../output/describe-error.ts';
import { printNotice } from '../output/print-notice.ts';

/** Does it for every id, also after one has failed: that is told, and the command ends with status 1. */
export async function doEach(ids: string[], work: (id: string) => Promise<void>): Promise<void> {
  for (const id of ids)
    try {
      await work(id);
    } catch (error) {
      const said = describe(error);
      if (said === undefined || ids.length === 1) throw error;
      printNotice(`${id}: ${said}`);
      process.exitCode = 1;
    }
}
