import { useEffect, useReducer } from 'preact/hooks';
import { type Transfer, TransferQueue } from './transfer-queue.ts';
import { whenUserLeaves } from './user.ts';

/** What this page sends, whichever part of the console is looked at meanwhile. */
export function sendFromPage<T extends Transfer>(
  ...given: ConstructorParameters<typeof TransferQueue<T>>
): TransferQueue<T> {
  const queue = new TransferQueue<T>(...given);
  // They are of the user that chose them, and would be sent as another one.
  whenUserLeaves(() => queue.remove(queue.list.map(({ key }) => key)));
  // What is not sent yet would be lost with the page. Of each queue: a listener that two add is there once.
  const askToStay = (event: Event) => event.preventDefault();
  queue.subscribe(() => {
    if (queue.isSending) addEventListener('beforeunload', askToStay);
    else removeEventListener('beforeunload', askToStay);
  });
  return queue;
}

/** The list of a queue, as it is now. */
export function useTransfers<T extends Transfer>(queue: TransferQueue<T>): readonly T[] {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => queue.subscribe(() => redraw(undefined)), [queue]);
  return queue.list;
}
