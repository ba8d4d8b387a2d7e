/** Whether values in these rows of CSV have line breaks: there are others than the line feed of each row. */
export function hasLineBreaks(text: string, rows: number): boolean {
  let found = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) found++;
  return found > rows || text.includes('\r');
}
