import { Link, useLocation } from 'wouter-preact';

interface PartsProps {
  /** The address of the page that has parts. */
  base: string;
  parts: { part: string; name: string }[];
}

/** Leads from one part of a page to the others. */
export function Parts({ base, parts }: PartsProps) {
  const [path] = useLocation();
  return (
    <nav class="parts" aria-label="Parts">
      {parts.map(({ part, name }) => (
        <Link
          key={part}
          href={`${base}/${part}`}
          aria-current={path === `${base}/${part}` ? 'page' : undefined}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}
