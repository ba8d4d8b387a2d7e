import type { HostKeys } from '../service/operations.ts';

/** Keys of a host, as ssh-keygen -l prints them. */
export const Fingerprints = ({ keys, fingerprints }: HostKeys) => (
  <ul class="fingerprints" aria-label="Fingerprints">
    {fingerprints.map((fingerprint, n) => (
      <li key={fingerprint} class="mono">
        <span class="muted">{kindOf(keys[n])}</span> {fingerprint}
      </li>
    ))}
  </ul>
);

function kindOf(key = ''): string {
  const [kind = '', patterns] = key.split(' ');
  if (kind === '@cert-authority') return `authority for ${patterns}`;
  return kind.replace(/^ssh-|-nistp.*/g, '');
}
