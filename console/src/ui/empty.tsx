import type { ComponentChildren } from 'preact';

/** Where there is nothing yet: what this is, and what to do first. */
export const Empty = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <div class="empty">
    <h2>{title}</h2>
    {children}
  </div>
);
