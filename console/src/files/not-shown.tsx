import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';

/** For a table that is not looked into here: where it is. */
export const NotShown = ({ children }: { children: ComponentChildren }) => (
  <div class="card-body">
    <p>{children}</p>
    <p class="muted">
      Download it, or upload it to a model of a <Link href="/projects">project</Link>: there its
      tables are shown, whatever their size.
    </p>
  </div>
);
