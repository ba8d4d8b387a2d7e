import { useEffect, useState } from 'preact/hooks';

/** Shorter waits are not told: what flashes by disturbs. */
const QUIET_MS = 250;

/** Says what is waited for. */
export function Wait({ children }: { children: string }) {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, []);
  return isLong ? (
    <p class="wait" role="status">
      {children}
    </p>
  ) : null;
}
