import type { ComponentChildren } from 'preact';

interface TableBoxProps {
  label: string;
  children: ComponentChildren;
}

/** A table that is scrolled sideways on a narrow screen. */
export const TableBox = ({ label, children }: TableBoxProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too.
  <section class="table-box" aria-label={label} tabIndex={0}>
    {children}
  </section>
);
