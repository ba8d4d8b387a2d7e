/** Limit on any answer of the provider, unpacked: its metadata, its keys, or what it says of somebody. */
const MAX_ANSWER_BYTES = 1_000_000;

/** fetch() for answers of an identity provider: one that is too long is given up, and costs no more memory than that. */
export async function fetchFromProvider(url: string, init: RequestInit): Promise<Response> {
  const answer = await fetch(url, init);
  if (!answer.body) return answer;
  let left = MAX_ANSWER_BYTES;
  const bounded = answer.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        left -= chunk.byteLength;
        if (left >= 0) controller.enqueue(chunk);
        else controller.error(new Error(`${url} answers more than ${MAX_ANSWER_BYTES} bytes`));
      },
    }),
  );
  const { status, statusText, headers } = answer;
  return new Response(bounded, { status, statusText, headers });
}
