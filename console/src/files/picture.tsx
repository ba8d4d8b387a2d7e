import { useEffect, useMemo, useState } from 'preact/hooks';
import { useHead } from '../service/files.ts';
import { Problem } from '../ui/problem.tsx';
import { Wait } from '../ui/wait.tsx';
import type { Entry } from './entries.ts';
import { imageType } from './image-type.ts';

/** A larger picture is downloaded, not shown. */
const MAX = 32 << 20;

/** A picture of the host. Only what browsers decode by themselves is shown. */
export function Picture({ sid, path, entry }: { sid: string; path: string; entry: Entry }) {
  const { name, size, time } = entry;
  const type = imageType(name);
  const isShown = type !== undefined && size > 0 && size <= MAX;
  const { data, error } = useHead(sid, path, {
    most: MAX,
    isWanted: isShown,
    version: `${size} ${time}`,
  });
  const [isBroken, setBroken] = useState(false);
  const address = useMemo(
    () => data && URL.createObjectURL(new Blob([data], { type })),
    [data, type],
  );
  useEffect(
    () => () => {
      if (address) URL.revokeObjectURL(address);
    },
    [address],
  );
  if (type === undefined) return <p class="muted">Browsers do not show this kind of picture.</p>;
  if (size > MAX) return <p class="muted">It is too large to be shown here.</p>;
  if (error) return <Problem error={error} />;
  if (size === 0 || isBroken)
    return <p class="muted">It is no picture that this browser can show.</p>;
  if (!address) return <Wait>Reading the picture …</Wait>;
  return <img class="picture" src={address} alt={name} onError={() => setBroken(true)} />;
}
