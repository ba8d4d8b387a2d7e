/** How a part of an array is drawn, and what its rows and columns are called: by their indices in the whole array. */
export interface Layout {
  rows: number;
  columns: number;
  rowName?: (row: number) => string;
  columnName?: (column: number) => string;
}

/** Where the ranges of a part begin: of each dimension that its index does not take away. */
export function firstOf(slice: string, shape: number[]): number[] {
  const parts = slice.split(',').map(part => part.trim());
  return shape.flatMap((size, n) => {
    const [from = '', to] = (parts[n] || ':').split(':');
    return to === undefined ? [] : [Math.min(size, Number(from))];
  });
}

/** One dimension is a column; of more the last one is drawn across, and all others down. */
export function layPart(shape: number[], first: number[]): Layout {
  const at = (dimension: number, index: number) => String((first[dimension] ?? 0) + index);
  const [size, ...others] = shape;
  if (size === undefined) return { rows: 1, columns: 1 };
  if (others.length === 0) return { rows: size, columns: 1, rowName: row => at(0, row) };
  const outer = shape.slice(0, -1);
  const columns = shape.at(-1) ?? 0;
  return {
    rows: columns === 0 ? 0 : outer.reduce((product, each) => product * each, 1),
    columns,
    columnName: column => at(outer.length, column),
    rowName: row => {
      let rest = row;
      const names = outer.map((each, n) => [each, n] as const).reverse();
      const indices = names.map(([each, n]) => {
        const index = rest % each;
        rest = Math.floor(rest / each);
        return at(n, index);
      });
      return indices.reverse().join(', ');
    },
  };
}
