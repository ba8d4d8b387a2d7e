import { WindlassError } from '../../shared/errors.ts';
import type { Handler } from '../context.ts';
import { listDirectory } from '../remote/list-directory.ts';

/** Lists a directory: one line of JSON an entry, `[name, size, type, modified]`, stored as the host gives them. */
const browse: Handler<'browse'> = async context => {
  const { worker, job, payload, over } = context;
  const output = await context.output();
  // The host need not list in the same order twice: what came before cannot be gone on with.
  if (output.stored.stdout > 0) {
    throw new WindlassError('remote_connection_failed', {
      detail: 'The listing was cut off.',
      hint: 'Ask again.',
    });
  }
  let entries = 0;
  await worker.sessions.use(job.session ?? '', over, async session => {
    for await (const batch of listDirectory(session, payload.path, over)) {
      const lines = batch.map(
        ({ name, size, type, modified }) => `${JSON.stringify([name, size, type, modified])}\n`,
      );
      await output.append('stdout', Buffer.from(lines.join('')));
      entries += batch.length;
    }
  });
  await output.flush();
  return { result: { entries } };
};

export default browse;
