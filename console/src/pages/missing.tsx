import { Link, useLocation } from 'wouter-preact';
import { Empty } from '../ui/empty.tsx';
import { useTitle } from '../ui/use-title.ts';

export function Missing() {
  useTitle('Not found');
  const [path] = useLocation();
  return (
    <>
      <h1>Not found</h1>
      <div class="card">
        <Empty title="There is no such page">
          <p>
            The console has nothing at <code>{path}</code>. The address may be mistyped, or of
            another release.
          </p>
          <p>
            Go to <Link href="/run">Run</Link>, to your <Link href="/jobs">jobs</Link> or to your{' '}
            <Link href="/projects">projects</Link>.
          </p>
        </Empty>
      </div>
    </>
  );
}
