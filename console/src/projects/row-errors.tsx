import type { ComponentChildren } from 'preact';

/** Where a file could not be read: its number in the upload, the line and the column. */
export interface RowError {
  file?: number;
  row?: number;
  column?: string | number;
  reason: string;
}

interface RowErrorsProps {
  message?: string;
  errors: unknown[];
  /** The artifacts of the files, by their numbers. */
  aids: string[];
  /** What is around an error in its file. */
  around?: (error: RowError) => ComponentChildren;
}

export const isRowError = (value: unknown): value is RowError =>
  typeof value === 'object' && value !== null && 'reason' in value;

/** Such as `day.csv, line 12, column speed`. */
function whereOf({ file, row, column }: RowError, aids: string[]): string {
  return [
    file === undefined ? undefined : (aids[file] ?? `file ${file}`),
    row === undefined ? undefined : `line ${row}`,
    column === undefined ? undefined : `column ${column}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** Why files were not read, each with its place. */
export function RowErrors({ message, errors, aids, around }: RowErrorsProps) {
  const listed = errors.filter(isRowError);
  return (
    <div class="row-errors" data-look={message === undefined ? undefined : 'error'}>
      {message !== undefined && <p class="break">{message}</p>}
      <ul>
        {listed.map((error, n) => {
          const where = whereOf(error, aids);
          return (
            <li key={n}>
              <p class="break">
                {where !== '' && <strong>{where}: </strong>}
                {error.reason}
              </p>
              {around?.(error)}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
