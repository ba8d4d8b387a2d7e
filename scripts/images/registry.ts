/** Where the images without a host are. */
const DEFAULT_REGISTRY = 'https://registry-1.docker.io';
/** A list of the images of all platforms (OCI Image Format, Image Index), or Docker's form of it. */
const INDEX = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

/** The digest of a tag (OCI Distribution 1.1, Checking if content exists in the registry). Throws where it has none. */
export async function askDigest(image: string, tag: string, registry?: string): Promise<string> {
  const [host = '', ...rest] = image.split('/');
  const hasHost = host.includes('.');
  const origin = registry ?? (hasHost ? `https://${host}` : DEFAULT_REGISTRY);
  const path = hasHost ? rest.join('/') : image;
  // Docker's registry keeps its official images below `library`.
  const repository = path.includes('/') || hasHost ? path : `library/${path}`;
  const url = `${origin}/v2/${repository}/manifests/${tag}`;
  const ask = (headers: Record<string, string> = {}) =>
    fetch(url, { method: 'HEAD', headers: { Accept: INDEX, ...headers } });
  let answer = await ask();
  if (answer.status === 401) {
    const token = await getToken(answer.headers.get('WWW-Authenticate') ?? '');
    answer = await ask({ Authorization: `Bearer ${token}` });
  }
  const digest = answer.headers.get('Docker-Content-Digest') ?? '';
  if (!answer.ok || !/^sha256:[0-9a-f]{64}$/.test(digest))
    throw new Error(`${image}:${tag}: ${new URL(url).host} answers ${answer.status}`);
  return digest;
}

/** A token for anybody (Docker Registry v2 authentication). */
async function getToken(challenge: string): Promise<string> {
  const fields = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
  );
  const { realm = '', service = '', scope = '' } = fields;
  const answer = await fetch(`${realm}?${new URLSearchParams({ service, scope })}`);
  const { token } = (await answer.json()) as { token?: string };
  if (!token) throw new Error(`${new URL(realm).host} gives no token`);
  return token;
}
