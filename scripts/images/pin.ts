/** An image with its tag, and perhaps a digest, in a line of a Dockerfile or a Compose file. */
const IMAGE = /^(FROM |\s+image: )([\w./-]+):([\w.-]+)(@sha256:[0-9a-f]{64})?/gm;

/** The text with the digest that `ask` gives behind each tag. */
export async function pinImages(
  text: string,
  ask: (image: string, tag: string) => Promise<string>,
): Promise<string> {
  const images = new Set([...text.matchAll(IMAGE)].map(([, , image, tag]) => `${image}:${tag}`));
  const digests = new Map<string, string>();
  for (const name of images) {
    const [image = '', tag = ''] = name.split(':');
    digests.set(name, await ask(image, tag));
  }
  return text.replace(
    IMAGE,
    (_line, before, image, tag) => `${before}${image}:${tag}@${digests.get(`${image}:${tag}`)}`,
  );
}
