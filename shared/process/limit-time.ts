/**
 * Does work with a signal that is aborted as this one is, or after a time. AbortSignal.any alone does not keep an
 * AbortSignal.timeout: Node 20 collects it before it fires, unless somebody else refers to it.
 */
export async function limitTime<T>(
  signal: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const end = () => late.abort(new DOMException(`over after ${ms} ms`, 'TimeoutError'));
  const timer = setTimeout(end, ms);
  try {
    return await work(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}
