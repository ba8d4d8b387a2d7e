import type { ComponentChildren } from 'preact';
import { Empty } from './empty.tsx';
import { Problem } from './problem.tsx';
import { Wait } from './wait.tsx';

interface ListSectionProps<T> {
  title: string;
  /** What is asked for, such as `your tokens`. */
  what: string;
  /** Undefined until they are there. */
  items: T[] | undefined;
  error: Error | null;
  /** The button that makes one; where there is none, it stands below what is said then. */
  add?: ComponentChildren;
  /** What is said where there is none. */
  empty?: { title: string; words: ComponentChildren };
  /** Between the title and the list, such as the one that is looked at. */
  shown?: ComponentChildren;
  /** The table. */
  children: (items: T[]) => ComponentChildren;
}

/** A titled list: what is waited for, what went wrong, what to do first, or the table. */
export function ListSection<T>(props: ListSectionProps<T>) {
  const { title, what, items, error, add, empty, shown, children } = props;
  const isEmpty = items?.length === 0 && empty !== undefined;
  return (
    <>
      <div class="page-head">
        <h2>{title}</h2>
        {items && !isEmpty && add}
      </div>
      {error && <Problem error={error} />}
      {!items && !error && <Wait>{`Asking for ${what} …`}</Wait>}
      {shown}
      {items && (
        <div class="card">
          {isEmpty ? (
            <Empty title={empty.title}>
              <p>{empty.words}</p>
              {add}
            </Empty>
          ) : (
            children(items)
          )}
        </div>
      )}
    </>
  );
}
