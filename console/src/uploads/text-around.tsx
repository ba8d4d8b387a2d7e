import { useQuery } from '@tanstack/preact-query';
import type { RowError } from '../projects/row-errors.tsx';
import { Wait } from '../ui/wait.tsx';
import { findCell, guessDelimiter, readAround } from './around.ts';

interface TextAroundProps {
  file: File;
  error: RowError & { row: number };
  parameters: Record<string, unknown>;
}

/** The lines around an error in a file that is still at hand, with the value that is meant. */
export function TextAround({ file, error: { row, column }, parameters }: TextAroundProps) {
  const encoding = typeof parameters.encoding === 'string' ? parameters.encoding : undefined;
  const { data, error } = useQuery({
    queryKey: ['around', file.name, file.size, file.lastModified, row],
    queryFn: async ({ signal }) => {
      const [lines, head] = await Promise.all([
        readAround(file, row, { encoding, signal }),
        readAround(file, 1, { encoding, signal }),
      ]);
      return { lines, header: head[0]?.text ?? '' };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error) return <p class="muted">The file cannot be read here any more.</p>;
  if (!data) return <Wait>Reading the lines around …</Wait>;
  const { lines, header } = data;
  const delimiter =
    typeof parameters.delimiter === 'string' ? parameters.delimiter : guessDelimiter(header);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long line is scrolled by keys, too.
    <section class="around" aria-label={`Lines around line ${row}`} tabIndex={0}>
      <pre>
        {lines.map(({ number, text }) => {
          const isIt = number === row;
          const cell = isIt ? findCell(text, column, { header, delimiter }) : undefined;
          return (
            <div key={number} data-is-it={isIt}>
              <span class="around-number">{number}</span>
              {cell ? (
                <>
                  {text.slice(0, cell.from)}
                  <mark>{text.slice(cell.from, cell.to) || ' '}</mark>
                  {text.slice(cell.to)}
                </>
              ) : (
                text
              )}
              {'\n'}
            </div>
          );
        })}
      </pre>
    </section>
  );
}
