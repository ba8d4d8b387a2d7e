import { Link } from 'wouter-preact';
import { Empty } from '../ui/empty.tsx';
import { useTitle } from '../ui/use-title.ts';

export function Missing() {
  useTitle('Not found');
  return (
    <Empty title="There is no such page">
      <p>
        Go to <Link href="/run">Run</Link> or to your <Link href="/jobs">jobs</Link>.
      </p>
    </Empty>
  );
}
